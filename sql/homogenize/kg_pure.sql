-- {% macro ddl__kg_pure() %}
/*
Pure homogenization: the mean of an item over those members of a group who rated it.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id): names of relations.
Gives (group_id, item_id, rating, raters). A cell with one rater is that person's own rating.
*/
create or replace macro kg_pure(p_ratings, p_groups) as table
  select
    members.group_id,
    ratings.item_id,
    avg(ratings.rating) as rating,
    count(*) as raters
  from query_table(p_ratings) as ratings
  join query_table(p_groups) as members using (user_id)
  group by members.group_id, ratings.item_id;
-- {% endmacro %}
