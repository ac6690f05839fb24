-- {% macro ddl__kg_coverage() %}
/*
How much of the original the release speaks of, as shares between 0 and 1: the items that some cell shows, of the items
rated; the ratings whose user's group shows the item, of all ratings; the cells shown, of groups x items rated.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id), p_cells(group_id, item_id): names of relations. Gives
one row (items_shown, ratings_shown, cells_shown), null where there is nothing to take a share of.
*/
create or replace macro kg_coverage(p_ratings, p_groups, p_cells) as table
  with kg_items as (
    select item_id, count(*) as raters
    from query_table(p_ratings)
    where rating is not null
    group by item_id
  ),
  kg_counts as (
    select
      (select count(*) from kg_items) as items,
      (select coalesce(sum(raters), 0) from kg_items) as ratings,
      (select count(distinct group_id) from query_table(p_groups)) as groups,
      (select count(*) from kg_items semi join query_table(p_cells) using (item_id)) as items_shown,
      (select count(*) from query_table(p_cells) semi join kg_items using (item_id)) as cells_shown,
      (
        select count(*)
        from query_table(p_ratings) as ratings
        join query_table(p_groups) as members using (user_id)
        semi join query_table(p_cells) as cells
          on cells.group_id = members.group_id and cells.item_id = ratings.item_id
        where ratings.rating is not null
      ) as ratings_shown
  )
  select
    items_shown / nullif(items, 0) as items_shown,
    ratings_shown / nullif(ratings, 0) as ratings_shown,
    cells_shown / nullif(groups * items, 0) as cells_shown
  from kg_counts;
-- {% endmacro %}
