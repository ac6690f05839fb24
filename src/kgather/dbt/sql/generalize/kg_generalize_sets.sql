-- {% macro ddl__kg_generalize_sets() %}
/*
Generalization to sets of values (NDGH): the sorted distinct ratings of a group's members for an item, with 0 for a
member who has not rated it. p_ratings(user_id, item_id, rating), p_groups(user_id, group_id): names of relations.
Gives (group_id, item_id, values) for the cells that some member rated.
*/
create or replace macro kg_generalize_sets(p_ratings, p_groups) as table
  with kg_sizes as (
    select group_id, count(distinct user_id) as group_size
    from query_table(p_groups)
    group by group_id
  ),
  kg_cells as (
    select
      members.group_id,
      ratings.item_id,
      list(distinct cast(ratings.rating as double)) as rated,
      -- A repeated pair does not stand for a second member.
      count(distinct user_id) as raters
    from query_table(p_ratings) as ratings
    join query_table(p_groups) as members using (user_id)
    where ratings.rating is not null
    group by members.group_id, ratings.item_id
  )
  select
    cells.group_id,
    cells.item_id,
    list_sort(
      case
        when cells.raters < sizes.group_size then list_distinct(list_append(cells.rated, cast(0 as double)))
        else cells.rated
      end
    ) as "values"
  from kg_cells as cells
  join kg_sizes as sizes using (group_id);
-- {% endmacro %}
