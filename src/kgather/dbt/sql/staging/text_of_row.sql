{#-
The text that stands for a row that was read: as it came, or its values where it was no line of a file. of: the relation
with a point, where there are several.
-#}
{% macro text_of_row(of="") -%}
  coalesce({{ of }}raw, concat_ws(',', {{ of }}user_id, {{ of }}item_id, {{ of }}given_rating, {{ of }}rated_at))
{%- endmacro %}
