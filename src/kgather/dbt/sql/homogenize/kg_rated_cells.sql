-- {% macro ddl__kg_rated_cells() %}
/*
Of every item and group with a rating: the raters' mean, how many they are, and by how much their ratings differ from
their own predictions, summed: (group_id, item_id, rating, raters, surprise).
p_ratings(user_id, item_id, rating), one row for each pair of user and item, p_groups(user_id, group_id),
p_preferences(user_id, level, preference), p_item_factors(item_id, level, factor): names of relations.
*/
create or replace macro kg_rated_cells(p_ratings, p_groups, p_preferences, p_item_factors) as table
  select
    members.group_id,
    ratings.item_id,
    avg(ratings.rating) as rating,
    count(*) as raters,
    sum(
      ratings.rating - users.level - items.level - list_inner_product(users.preference, items.factor)
    ) as surprise
  from query_table(p_ratings) as ratings
  join query_table(p_groups) as members using (user_id)
  join query_table(p_preferences) as users using (user_id)
  join query_table(p_item_factors) as items using (item_id)
  where ratings.rating is not null
  group by members.group_id, ratings.item_id;
-- {% endmacro %}
