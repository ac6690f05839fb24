-- {% macro ddl__kg_predicted() %}
/*
Predicted homogenization: the mean over all members of the predicted rating, for every cell asked for. It is
linear in the members' vectors, so the group's mean vector says it all; no rating enters as such.
p_cells(group_id, item_id), p_group_vectors(group_id, level, factor), p_item_factors(item_id, level, factor): names
of relations. Gives (group_id, item_id, rating).
*/
create or replace macro kg_predicted(p_cells, p_group_vectors, p_item_factors, p_min, p_max) as table
  select
    cells.group_id,
    cells.item_id,
    kg_cell(groups.level, groups.factor, items.level, items.factor, p_min, p_max) as rating
  from query_table(p_cells) as cells
  join query_table(p_group_vectors) as groups using (group_id)
  join query_table(p_item_factors) as items using (item_id);
-- {% endmacro %}
