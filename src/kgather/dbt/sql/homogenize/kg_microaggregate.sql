-- {% macro ddl__kg_microaggregate() %}
/*
Microaggregation of filled ratings: for every cell asked for, the mean over all members of a group of the rating where
there is one and of p_fill where there is none. Standardising the filled ratings of an item, taking the mean of the
group and undoing it gives the same, as the mean is linear. Users x items is never written.
p_cells(group_id, item_id), p_ratings(user_id, item_id, rating), one row for each pair of user and item,
p_groups(user_id, group_id): names of relations; p_fill: a number, as the middle of the scale. Gives
(group_id, item_id, rating).
*/
create or replace macro kg_microaggregate(p_cells, p_ratings, p_groups, p_fill) as table
  with kg_fill as (
    select
      case
        when isfinite(cast(p_fill as double)) then cast(p_fill as double)
        else error('kg_microaggregate: p_fill is a number')
      end as fill
  ),
  kg_sizes as (
    select group_id, count(*) as group_size
    from query_table(p_groups)
    group by group_id
  ),
  kg_rated as (
    select members.group_id, ratings.item_id, sum(ratings.rating) as total, count(*) as raters
    from query_table(p_ratings) as ratings
    join query_table(p_groups) as members using (user_id)
    where ratings.rating is not null
    group by members.group_id, ratings.item_id
  )
  select
    cells.group_id,
    cells.item_id,
    cast(
      (coalesce(rated.total, 0) + (sizes.group_size - coalesce(rated.raters, 0)) * filling.fill) / sizes.group_size
      as double
    ) as rating
  from query_table(p_cells) as cells
  join kg_sizes as sizes using (group_id)
  left join kg_rated as rated using (group_id, item_id)
  cross join kg_fill as filling;
-- {% endmacro %}
