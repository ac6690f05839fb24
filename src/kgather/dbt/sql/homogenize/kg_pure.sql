-- {% macro ddl__kg_pure() %}
/*
Pure homogenization: the mean of an item over those members of a group who rated it.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id): names of relations. p_one_per_pair: whether each pair
of user and item is known to occur once, which is counted faster. Gives (group_id, item_id, rating, raters). A cell with
one rater is that person's own rating.
*/
create or replace macro kg_pure(p_ratings, p_groups, p_one_per_pair := false) as table
  select
    members.group_id,
    ratings.item_id,
    avg(ratings.rating) as rating,
    -- However often a pair occurs: whose mean is one person's is not to pass for that of several.
    case when not p_one_per_pair and min(user_id) = max(user_id) then 1 else count(*) end as raters
  from query_table(p_ratings) as ratings
  join query_table(p_groups) as members using (user_id)
  where ratings.rating is not null
  group by members.group_id, ratings.item_id;
-- {% endmacro %}
