-- {% macro ddl__kg_clip_to_intervals() %}
/*
The ratings within their groups' windows: every member has a rating for every item of the group, its own moved to the
nearest end of the window, or 0 so moved where there is none. So all members of a group have the same items, and differ
by no more than a window is wide.
p_ratings(user_id, item_id, rating), p_groups(user_id, group_id), p_intervals(group_id, item_id, low, high), as
kg_intervals gives them: names of relations. Gives (user_id, item_id, rating), one row for each pair.
*/
create or replace macro kg_clip_to_intervals(p_ratings, p_groups, p_intervals) as table
  with kg_rated as (
    select user_id, item_id, avg(cast(rating as double)) as rating
    from query_table(p_ratings)
    where rating is not null
    group by user_id, item_id
  )
  select
    members.user_id,
    intervals.item_id,
    least(greatest(coalesce(kg_rated.rating, 0), intervals.low), intervals.high) as rating
  from query_table(p_groups) as members
  join query_table(p_intervals) as intervals using (group_id)
  left join kg_rated on kg_rated.user_id = members.user_id and kg_rated.item_id = intervals.item_id;
-- {% endmacro %}
