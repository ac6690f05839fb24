-- {% macro ddl__kg_padded() %}
/*
Padded homogenization: the mean over all members of the rating where there is one and of the prediction where
there is none, clipped to the scale, for every cell asked for. Computed from the group's mean prediction and what
its raters' ratings differ from their own predictions, so that users x items is never written.
p_cells(group_id, item_id), p_ratings(user_id, item_id, rating), p_groups(user_id, group_id),
p_preferences(user_id, level, preference), p_group_vectors(group_id, level, factor),
p_item_factors(item_id, level, factor): names of relations. Gives (group_id, item_id, rating).
*/
create or replace macro kg_padded(
  p_cells, p_ratings, p_groups, p_preferences, p_group_vectors, p_item_factors, p_min, p_max
) as table
  with sizes as (
    select group_id, count(*) as group_size
    from query_table(p_groups)
    group by group_id
  ),
  surprises as (
    select group_id, item_id, surprise
    from kg_rated_cells(p_ratings, p_groups, p_preferences, p_item_factors)
  ),
  predicted as (
    from kg_predicted(p_cells, p_group_vectors, p_item_factors, '-infinity'::double, 'infinity'::double)
  )
  select
    predicted.group_id,
    predicted.item_id,
    kg_padded_cell(predicted.rating, surprises.surprise, sizes.group_size, p_min, p_max) as rating
  from predicted
  join sizes using (group_id)
  left join surprises using (group_id, item_id);
-- {% endmacro %}
