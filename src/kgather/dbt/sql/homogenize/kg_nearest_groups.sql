-- {% macro ddl__kg_nearest_groups() %}
/*
The group of a release that fits each user best: (user_id, group_id, items, distance). distance is the root mean square
difference between the user's ratings and what the group is shown to think of the same items, items their number. An item
that a group does not show counts as the mean over the groups that show it. Of equally near groups the one with the
smallest id. Users who rated none of the shown items have no row.
p_ratings(user_id, item_id, rating), one row a pair, p_shown(group_id, item_id, rating): names of relations.
*/
create or replace macro kg_nearest_groups(p_ratings, p_shown) as table
  with squares as (
    select
      ratings.user_id,
      ratings.item_id,
      shown.group_id,
      pow(ratings.rating - shown.rating, 2) as square
    from query_table(p_ratings) as ratings
    join query_table(p_shown) as shown using (item_id)
    where ratings.rating is not null and shown.rating is not null
  ),
  usual as (
    select user_id, item_id, avg(square) as square
    from squares
    group by user_id, item_id
  ),
  of_users as (
    select user_id, count(*) as items, sum(square) as total
    from usual
    group by user_id
  ),
  fits as (
    select squares.user_id, squares.group_id, sum(squares.square - usual.square) as better
    from squares
    join usual using (user_id, item_id)
    group by squares.user_id, squares.group_id
  )
  select
    fits.user_id,
    -- Sums of decimals of other orders differ in their last digits.
    arg_min(fits.group_id, (round(fits.better, 9), fits.group_id)) as group_id,
    any_value(of_users.items) as items,
    round(sqrt(greatest(min(fits.better) + any_value(of_users.total), 0) / any_value(of_users.items)), 6) as distance
  from fits
  join of_users using (user_id)
  group by fits.user_id;
-- {% endmacro %}
