{#-
The relation (level, low, high) of a hierarchy, to stand in a FROM clause under the name given. levels: lists of
[low, high], the finest first; 'halves', that of the scale 0 to 5; or 'binary', which halves the values of the scale
until they are single. Only 'binary' reads scale_relation(scale_min, scale_max, scale_step), and fails when it runs if
there is no step.
-#}
{% macro hierarchy_relation(levels, name, scale_relation=none) %}
  {%- if levels == 'binary' -%}
(
  with steps as (
    select
      case
        when scale_step > 0 then range(1, cast(ceil((scale_max - scale_min) / scale_step - 1e-6) as bigint))
        else error('hierarchy: binary needs a scale with a step: set scale to [min, max, step] or list the levels')
      end as numbers,
      scale_min,
      scale_max,
      scale_step
    from {{ scale_relation }}
  ),
  -- The values of the scale, and 0 for not rated.
  domain as (
    select distinct unnest(
      list_concat(
        list_transform(numbers, lambda step: round(cast(scale_min + step * scale_step as double), 9)),
        [cast(0 as double), cast(scale_min as double), cast(scale_max as double)]
      )
    ) as value
    from steps
  ),
  places as (
    select value, row_number() over (order by value asc) - 1 as place, count(*) over () as size
    from domain
  ),
  -- The widest range is cut 0 times. Parts of parts are nested: floor(floor(2 x) / 2) = floor(x).
  parts as (
    select cuts, cast(place * pow(2, cuts) as bigint) // size as part, min(value) as low, max(value) as high
    from places, range(32) as every (cuts)
    where pow(2, cuts) < size
    group by cuts, part
  )
  select cast(max(cuts) over () - cuts + 1 as integer) as level, low, high
  from parts
) as {{ name }}
  {%- else -%}
(
  select cast(level as integer) as level, cast(low as double) as low, cast(high as double) as high
  from (
    values
    {%- for ranges in kgather.hierarchy_levels(levels) -%}
      {%- set level = loop.index -%}
      {%- set last_level = loop.last -%}
      {%- for range in ranges %}
      ({{ level }}, {{ range[0] }}, {{ range[1] }}){{ "," if not (last_level and loop.last) }}
      {%- endfor -%}
    {%- endfor %}
  ) as ranges (level, low, high)
) as {{ name }}
  {%- endif -%}
{% endmacro %}

{#- The levels of a hierarchy that is listed or has a name of its own. -#}
{% macro hierarchy_levels(hierarchy) %}
  {%- do return([[[0, 2], [3, 5]], [[0, 5]]] if hierarchy == 'halves' else hierarchy) -%}
{% endmacro %}
