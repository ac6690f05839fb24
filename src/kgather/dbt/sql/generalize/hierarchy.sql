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
    select value, row_number() over (order by value) - 1 as place, count(*) over () as size
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

{#- What is wrong with the var hierarchy, or nothing. The scale counts only where it is declared. -#}
{% macro hierarchy_problem() %}
  {%- set hierarchy = var('hierarchy') -%}
  {#- A scale that is wrong itself is told of by scale_problem. -#}
  {%- set scale = var('scale') if not kgather.scale_problem() | trim else none -%}
  {%- if hierarchy is none -%}
  {%- elif hierarchy is string and hierarchy not in ['halves', 'binary'] -%}
    hierarchy is halves, binary or levels of [low, high], the finest first, not {{ tojson(hierarchy) }}.
  {%- elif hierarchy == 'binary' -%}
    {%- if scale is not none and scale | length == 2 -%}
      hierarchy: binary needs a scale with a step: set scale to [min, max, step] or list the levels.
    {%- endif -%}
  {%- else -%}
    {%- set problems = kgather.shape_problems(hierarchy) if hierarchy is not string else [] -%}
    {%- if not problems -%}
      {%- do problems.extend(kgather.level_problems(kgather.hierarchy_levels(hierarchy), scale)) -%}
    {%- endif -%}
    {{- problems[0] if problems -}}
  {%- endif -%}
{% endmacro %}

{#- Whether these are levels of ranges of numbers at all. -#}
{% macro shape_problems(levels) %}
  {%- set problems = [] -%}
  {%- if levels is mapping or levels is not iterable or levels | length == 0 -%}
    {%- do return(
      ["hierarchy is halves, binary or levels of [low, high], the finest first, not " ~ tojson(levels) ~ "."]
    ) -%}
  {%- endif -%}
  {%- for ranges in levels -%}
    {%- if ranges is string or ranges is mapping or ranges is not iterable or ranges | length == 0 -%}
      {%- do problems.append(
        "hierarchy: level " ~ loop.index ~ " is a list of [low, high], not " ~ tojson(ranges) ~ "."
      ) -%}
    {%- else -%}
      {%- set level = loop.index -%}
      {%- for range in ranges -%}
        {%- set listed = range is iterable and range is not string and range is not mapping -%}
        {%- if not listed or range | length != 2 or range | select('number') | list | length < 2
          or range | select('boolean') | list or range[0] - range[0] != 0 or range[1] - range[1] != 0
          or range[0] > range[1] -%}
          {%- do problems.append(
            "hierarchy: level " ~ level ~ " is a list of [low, high] with low not above high, not "
            ~ tojson(range) ~ "."
          ) -%}
        {%- endif -%}
      {%- endfor -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do return(problems) -%}
{% endmacro %}

{#- Whether the ranges of a level are disjoint, lie in those of the next and cover the scale, and the last is one. -#}
{% macro level_problems(levels, scale) %}
  {%- set problems = [] -%}
  {%- set domain = kgather.scale_values(scale) -%}
  {%- for ranges in levels -%}
    {%- set level = loop.index -%}
    {%- set wider = levels[level] if not loop.last else none -%}
    {%- set sorted = ranges | sort -%}
    {%- for range in sorted -%}
      {%- if not loop.first and sorted[loop.index0 - 1][1] >= range[0] -%}
        {%- do problems.append(
          "hierarchy: level " ~ level ~ ": the ranges " ~ tojson(sorted[loop.index0 - 1]) ~ " and " ~ tojson(range)
          ~ " overlap; both ends belong to a range."
        ) -%}
      {%- endif -%}
      {%- set inside = [] -%}
      {%- for other in wider or [] -%}
        {%- if other[0] <= range[0] and range[1] <= other[1] -%}{%- do inside.append(other) -%}{%- endif -%}
      {%- endfor -%}
      {%- if wider is not none and not inside -%}
        {%- do problems.append(
          "hierarchy: level " ~ level ~ ": the range " ~ tojson(range) ~ " lies in no range of level " ~ (level + 1)
          ~ ". List the finest level first."
        ) -%}
      {%- endif -%}
    {%- endfor -%}
    {%- if wider is none and ranges | length > 1 -%}
      {%- do problems.append(
        "hierarchy: level " ~ level ~ ", the last, is one range, not " ~ tojson(ranges) ~ "."
      ) -%}
    {%- endif -%}
    {#- Between steps a scale may have gaps; a scale without a step is covered where the widest range covers it. -#}
    {%- for value in domain if wider is none or scale | length == 3 -%}
      {%- set inside = [] -%}
      {%- for range in ranges -%}
        {%- if range[0] <= value <= range[1] -%}{%- do inside.append(range) -%}{%- endif -%}
      {%- endfor -%}
      {%- if not inside -%}
        {%- do problems.append(
          "hierarchy: level " ~ level ~ ": no range covers " ~ value ~ ", a value of the scale"
          ~ (", which stands for not rated" if value == 0) ~ ". Extend a range, or use binary."
        ) -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endfor -%}
  {%- do return(problems) -%}
{% endmacro %}

{#- The values of a declared scale and 0 for not rated; of a scale without a step the ends. -#}
{% macro scale_values(scale) %}
  {%- if scale is none -%}{%- do return([]) -%}{%- endif -%}
  {%- set values = [0, scale[0], scale[1]] -%}
  {%- if scale | length == 3 -%}
    {%- for step in range(1, ((scale[1] - scale[0]) / scale[2] - 1e-6) | round(0, 'ceil') | int) -%}
      {%- do values.append((scale[0] + step * scale[2]) | round(9)) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- do return(values | unique | sort) -%}
{% endmacro %}
