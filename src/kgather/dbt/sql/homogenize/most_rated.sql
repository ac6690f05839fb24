{#- The n items that most users rated, as a subquery of the columns asked for; equally often rated ones by id. -#}
{% macro most_rated(n, columns="item_id") -%}
  (select {{ columns }} from {{ ref("int_kgather__items") }} order by raters desc, item_id limit {{ n }})
{%- endmacro %}
