-- {% macro ddl__kg_padded_cell() %}
/*
The padded mean of a group for an item, clipped to the scale: the group's mean prediction and what its raters' ratings
differ from their own predictions, spread over all members. p_surprise is null where nobody rated.
*/
create or replace macro kg_padded_cell(p_predicted, p_surprise, p_group_size, p_min, p_max) as
  least(greatest(p_predicted + coalesce(p_surprise, 0) / p_group_size, p_min), p_max);
-- {% endmacro %}
