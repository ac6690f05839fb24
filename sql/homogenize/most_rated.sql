{#- The n items that most users rated, as a subquery; equally often rated ones by id. -#}
{% macro most_rated(n) -%}
  (select item_id from {{ ref("int_kgather__items") }} order by raters desc, item_id limit {{ n }})
{%- endmacro %}
