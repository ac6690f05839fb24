-- {% macro ddl__kg_generalize_ranges() %}
/*
Generalization to ranges of a hierarchy (DGH) with local recoding: for each cell of a group and item the range of the
lowest level that covers the ratings of all members, where 0 stands for a member who has not rated the item. Where all
have the same value, the range is that value. p_ratings(user_id, item_id, rating), p_groups(user_id, group_id),
p_hierarchy(level, low, high): names of relations. Gives (group_id, item_id, range) for the cells that some member
rated. Fails where no range covers a cell.
*/
create or replace macro kg_generalize_ranges(p_ratings, p_groups, p_hierarchy) as table
  with kg_sizes as (
    select group_id, count(distinct user_id) as group_size
    from query_table(p_groups)
    group by group_id
  ),
  kg_rated as (
    select
      members.group_id,
      ratings.item_id,
      cast(min(ratings.rating) as double) as low,
      cast(max(ratings.rating) as double) as high,
      -- A repeated pair does not stand for a second member.
      count(distinct user_id) as raters
    from query_table(p_ratings) as ratings
    join query_table(p_groups) as members using (user_id)
    where ratings.rating is not null
    group by members.group_id, ratings.item_id
  ),
  kg_cells as (
    select
      rated.group_id,
      rated.item_id,
      case when rated.raters < sizes.group_size then least(rated.low, 0) else rated.low end as low,
      case when rated.raters < sizes.group_size then greatest(rated.high, 0) else rated.high end as high
    from kg_rated as rated
    join kg_sizes as sizes using (group_id)
  ),
  -- A scale of steps has few pairs of a lowest and a highest value, however many cells there are.
  kg_lowest as (
    select
      pairs.low,
      pairs.high,
      arg_min(
        {'low': cast(hierarchy.low as double), 'high': cast(hierarchy.high as double)},
        (hierarchy.level, hierarchy.high - hierarchy.low, hierarchy.low)
      ) as range
    from (select distinct low, high from kg_cells) as pairs
    join query_table(p_hierarchy) as hierarchy
      -- Ratings that were once read as 32 bit floats lie a little off their steps.
      on hierarchy.low <= pairs.low + 1e-6 and hierarchy.high >= pairs.high - 1e-6
    group by pairs.low, pairs.high
  )
  select
    cells.group_id,
    cells.item_id,
    case
      when lowest.range is null then error(
        coalesce(
          (
            select
              'a rating, or the 0 of an item not rated, lies outside of the hierarchy: its widest range is ['
              || printf('%g', cast(low as double)) || ', ' || printf('%g', cast(high as double))
              || '] at level ' || level || '. Extend the hierarchy.'
            from query_table(p_hierarchy)
            order by high - low desc, level asc, low asc
            limit 1
          ),
          'the hierarchy has no ranges'
        )
      )
      when cells.low = cells.high then {'low': cells.low, 'high': cells.high}
      else lowest.range
    end as range
  from kg_cells as cells
  left join kg_lowest as lowest using (low, high);
-- {% endmacro %}
