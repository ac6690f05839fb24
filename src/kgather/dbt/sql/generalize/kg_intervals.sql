-- {% macro ddl__kg_intervals() %}
/*
Common windows (Sun and Sun, algorithm 1): for each group and item the closed window of width p_epsilon that changes the
members' ratings least. Of several the lowest that begins at a whole number, else the lowest: of whole ratings and a
whole p_epsilon one always does. It begins nowhere below the lowest rating, rounded down, nor above what holds the
highest, and not rated counts as 0. So of an item that only some members rated, either all members are shown in the
window or, where that changes no less, the item is absent.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id): names of relations; where a pair of user and item
occurs more than once, its mean counts. Gives (group_id, item_id, low, high), in an order that tells nothing of the
input.
*/
create or replace macro kg_intervals(p_ratings, p_groups, p_epsilon) as table
  with kg_options as (
    select
      case
        when p_epsilon >= 0 and isfinite(cast(p_epsilon as double)) then cast(p_epsilon as double)
        else error('kg_intervals: p_epsilon is a number of at least 0, not ' || coalesce(cast(p_epsilon as varchar), 'null'))
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
    select
      group_id,
      item_id,
      list(rating order by rating asc) as ratings,
      any_value(members) as members,
      any_value(members) - count(*) as others,
      any_value(width) as width,
      cast(cast(floor(min(rating)) as bigint) as double) as least,
      cast(cast(greatest(floor(min(rating)), ceil(max(rating) - any_value(width))) as bigint) as double) as most
    from kg_of_users
    join kg_sizes using (group_id)
    cross join kg_options
    group by group_id, item_id
  ),
  -- What a window changes is convex in where it begins. The slope is -members from far below, and one more from each
  -- rating less the width on, and from each rating on. So it is least between the breaks number `members` and the next.
  kg_breaks as (
    select group_id, item_id, place, sum(weight) as weight
    from (
      select group_id, item_id, unnest(ratings) as place, 1 as weight from kg_cells
      union all
      select group_id, item_id, unnest(list_transform(ratings, lambda r: r - width)) as place, 1 as weight from kg_cells
      union all
      select group_id, item_id, unnest([0.0, 0 - width]) as place, others as weight from kg_cells where others > 0
    )
    group by group_id, item_id, place
  ),
  kg_slopes as (
    select group_id, item_id, place, sum(weight) over (partition by group_id, item_id order by place asc) as passed
    from kg_breaks
  ),
  kg_flat as (
    select
      cells.group_id,
      cells.item_id,
      -- Rounded, so that a whole number which is off in its last bits is one.
      round(least(greatest(min(slopes.place) filter (where passed >= members), any_value(least)), any_value(most)), 9)
        as first_low,
      round(least(greatest(min(slopes.place) filter (where passed > members), any_value(least)), any_value(most)), 9)
        as last_low
    from kg_cells as cells
    join kg_slopes as slopes using (group_id, item_id)
    group by cells.group_id, cells.item_id
  ),
  kg_windows as (
    select
      kg_cells.*,
      case when ceil(first_low) <= last_low then ceil(first_low) else first_low end as low
    from kg_cells
    join kg_flat using (group_id, item_id)
  )
  select group_id, item_id, low, low + width as high
  from kg_windows
  where
    others = 0
    -- Rounded, so that sums which differ in their last bits only are equal.
    or round(
      list_sum(list_transform(ratings, lambda r: greatest(low - r, r - low - width, 0)))
      + others * greatest(low, 0 - low - width, 0),
      9
    ) < round(list_sum(list_transform(ratings, lambda r: abs(r))), 9)
  order by group_id asc, item_id asc;
-- {% endmacro %}
