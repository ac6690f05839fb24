-- {% macro ddl__kg_entries_added() %}
/*
How many entries the release has beside the original, counted in both ways that are in use: by group (one row a group:
the number of cells), which falls as groups grow, and repeated (every member has the group's row: sum of size * cells),
which rises. entries_added = repeated - those of the original; cells_added: cells that no member rated.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id), p_cells(group_id, item_id): names of relations. Gives
one row (entries_original, entries_of_groups, entries_repeated, entries_added, cells_added). Users in no group do not
enter.
*/
create or replace macro kg_entries_added(p_ratings, p_groups, p_cells) as table
  with kg_rated as (
    select members.group_id, ratings.item_id, count(*) as raters
    from query_table(p_ratings) as ratings
    join query_table(p_groups) as members using (user_id)
    where ratings.rating is not null
    group by members.group_id, ratings.item_id
  ),
  kg_sizes as (
    select group_id, count(*) as group_size
    from query_table(p_groups)
    group by group_id
  ),
  kg_counts as (
    select
      (select cast(coalesce(sum(raters), 0) as bigint) from kg_rated) as entries_original,
      count(*) as entries_of_groups,
      cast(coalesce(sum(sizes.group_size), 0) as bigint) as entries_repeated,
      count(*) filter (where rated.raters is null) as cells_added
    from query_table(p_cells) as cells
    join kg_sizes as sizes using (group_id)
    left join kg_rated as rated on rated.group_id = cells.group_id and rated.item_id = cells.item_id
  )
  select
    entries_original,
    entries_of_groups,
    entries_repeated,
    entries_repeated - entries_original as entries_added,
    cells_added
  from kg_counts;
-- {% endmacro %}
