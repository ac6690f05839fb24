{#- The rating of a pair that occurs several times, from its ratings that are kept: an aggregate. -#}
{% macro of_repeats(rating) -%}
  {%- set how = kgather.setting("repeats") -%}
  {%- if how == "count" -%}
    cast(count(*) as double)
  {%- elif how in ("max", "sum") -%}
    {{ how }}({{ rating }} order by {{ rating }} asc)
  {%- else -%}
    avg({{ rating }})
  {%- endif -%}
{%- endmacro %}

{#- Whether a rating of a pair that occurs several times is kept; `repeated` has the pair's first and latest times. -#}
{% macro is_kept(rated_at, repeated) -%}
  {%- set how = kgather.setting("repeats") or "latest" -%}
  {%- if how in ("latest", "first") -%}
    {{ rated_at }} is not distinct from {{ repeated }}.{{ how }}_at
  {%- else -%}
    true
  {%- endif -%}
{%- endmacro %}

{#- Whether ratings are changed after they are read, so that their scale is that of what is staged. -#}
{% macro changes_ratings() -%}
  {{ return(
    kgather.setting("repeats") in ("sum", "count") or kgather.setting("rating_cap") is not none
    or kgather.setting("rating_log")
  ) }}
{%- endmacro %}

{#- Whether a row is set aside for a fault: not where it says "not rated", or is a repeat, or was set aside on request. -#}
{% macro is_fault(reason) -%}
  {{ reason }} <> 'not rated' and {{ reason }} not like 'user has fewer than %'
  {%- for absence in kgather.reasons_of_absence().values() %} and {{ reason }} <> '{{ absence }}'{% endfor %}
  {%- if kgather.setting("repeats") is not none %} and {{ reason }} not like 'repeated pair: %'{% endif %}
{%- endmacro %}
