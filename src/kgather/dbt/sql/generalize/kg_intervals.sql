-- {% macro ddl__kg_intervals() %}
/*
Common windows (Sun and Sun, algorithm 1): for each group and item the closed window of width p_epsilon that begins at a
whole number and changes the members' ratings least, the lowest of several. It begins nowhere below the lowest rating,
rounded down, nor above what holds the highest, and not rated counts as 0. So of an item that only some members rated,
either all members are shown in the window or, where that changes no less, the item is absent.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id): names of relations; where a pair of user and item
occurs more than once, its mean counts. Gives (group_id, item_id, low, high), in an order that tells nothing of the
input.
*/
create or replace macro kg_intervals(p_ratings, p_groups, p_epsilon) as table
  with kg_options as (
    select
      case
        when p_epsilon >= 0 and isfinite(cast(p_epsilon as double)) then cast(p_epsilon as double)
        else error('p_epsilon is a number of at least 0, not ' || coalesce(cast(p_epsilon as varchar), 'null'))
      end as width
  ),
  kg_sizes as (
    select group_id, count(distinct user_id) as members
    from query_table(p_groups)
    group by group_id
  ),
  kg_of_users as (
    select members.group_id, ratings.item_id, avg(cast(ratings.rating as double)) as rating
    from query_table(p_ratings) as ratings
    join query_table(p_groups) as members using (user_id)
    where ratings.rating is not null
    group by members.group_id, user_id, ratings.item_id
  ),
  kg_cells as (
    select group_id, item_id, list(rating order by rating) as ratings
    from kg_of_users
    group by group_id, item_id
  ),
  kg_windows as (
    select
      kg_cells.*,
      kg_sizes.members - len(ratings) as others,
      width,
      unnest(
        range(
          cast(floor(ratings[1]) as bigint),
          cast(greatest(floor(ratings[1]), ceil(ratings[-1] - width)) as bigint) + 1
        )
      ) as low
    from kg_cells
    join kg_sizes using (group_id)
    cross join kg_options
  ),
  kg_costs as (
    select
      group_id,
      item_id,
      low,
      width,
      others,
      -- Rounded, so that sums which differ in their last bits only are equal.
      round(
        list_sum(list_transform(ratings, lambda r: greatest(low - r, r - low - width, 0)))
        + others * greatest(low, 0 - low - width, 0),
        9
      ) as cost,
      round(list_sum(list_transform(ratings, lambda r: abs(r))), 9) as cost_of_none
    from kg_windows
  ),
  kg_best as (
    select
      group_id,
      item_id,
      arg_min(low, (cost, low)) as low,
      any_value(width) as width,
      min(cost) < any_value(cost_of_none) or any_value(others) = 0 as shown
    from kg_costs
    group by group_id, item_id
  )
  select group_id, item_id, cast(low as double) as low, low + width as high
  from kg_best
  where shown
  order by group_id, item_id;
-- {% endmacro %}
