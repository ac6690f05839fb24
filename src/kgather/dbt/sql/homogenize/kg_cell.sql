-- {% macro ddl__kg_cell() %}
/* The predicted rating of a group (or user) for an item, from their levels and factors, clipped to the scale. */
create or replace macro kg_cell(p_level, p_factor, p_item_level, p_item_factor, p_min, p_max) as
  cast(
    least(greatest(p_level + p_item_level + list_inner_product(p_factor, p_item_factor), p_min), p_max)
    as double
  );
-- {% endmacro %}
