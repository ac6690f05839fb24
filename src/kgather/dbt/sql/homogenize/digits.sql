{#- How many decimals the release shows: a number for the whole release, which hangs on the scale alone. -#}

{#- The decimals of a shown rating, as a subquery. -#}
{% macro shown_digits() -%}
  (select kg_digits(scale_max - scale_min) from {{ kgather.ref_to("int_kgather__scale") }})
{%- endmacro %}

{#- The end of the scale, min or max, as a number with the decimals of a shown rating that lies on the scale. -#}
{% macro shown_end(end) -%}
  (
    select {{ "ceil" if end == "min" else "floor" }}(scale_{{ end }} * 10.0 ^ digits) / 10.0 ^ digits
    from (select *, kg_digits(scale_max - scale_min) as digits from {{ kgather.ref_to("int_kgather__scale") }})
  )
{%- endmacro %}

{#- A rating as it is shown: with as many decimals as it is worth, on the scale. -#}
{% macro rounded_rating(rating) -%}
  round(
    least(greatest(cast({{ rating }} as double), {{ kgather.shown_end("min") }}), {{ kgather.shown_end("max") }}),
    {{ kgather.shown_digits() }}
  )
{%- endmacro %}

{#-
The columns level and factor of a vector, rounded to one decimal more than ratings have, as several of them are added;
to be selected beside `vector_decimals`.
-#}
{% macro rounded_vector(level, factor) -%}
  cast(round(cast({{ level }} as double), decimals.shown) as float) as level,
  cast(
    list_transform({{ factor }}, lambda coordinate: round(cast(coordinate as double), decimals.shown)) as float[]
  ) as factor
{%- endmacro %}

{% macro vector_decimals() -%}
  (select {{ kgather.shown_digits() }} + 1 as shown) as decimals
{%- endmacro %}
