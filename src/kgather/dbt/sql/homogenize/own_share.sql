{#-
How much of an item's vector is the item's own, by its raters: nothing up to min_raters, all from twice as many, or from
ten more. As the kernel has it (udfs/preferences/item_side.py).
-#}
{% macro own_share(raters) -%}
  {% set least = kgather.least_raters() or 10 -%}  {#- nothing is set while dbt parses -#}
  least(greatest(({{ raters }} - {{ least }}) / {{ [least, 10] | max }}, 0), 1)
{%- endmacro %}

{#- The ratings that cells are padded around. -#}
{% macro padding_ratings() %}
  {{ return(kgather.ref_to("stg_kgather__ratings" if kgather.homogenize() == "pure" else "int_kgather__padding_ratings")) }}
{% endmacro %}
