{#-
Generalized cells with one column per artifact, named by the item's id: a list for `sets`, a struct (low, high) for
`ranges`; null where no member rated the item. Gives a query of (group_id, "<item id>", ...), one row per group, those
without any cell too.

artifacts_relation(item_id, position): the artifacts in the order of their columns. long_relation: what
kg_generalize_sets or kg_generalize_ranges gave. groups_relation: all groups (group_id). reserved: names of other
columns that will stand beside these.
-#}
{% macro generalized_select(kind, artifacts_relation, long_relation, groups_relation, reserved=[]) %}
  {%- set values = {'sets': '"values"', 'ranges': '"range"'} -%}
  {%- if kind not in values -%}
    {% do exceptions.raise_compiler_error("kgather: generalized cells are sets or ranges, not " ~ kind ~ ".") %}
  {%- endif -%}
  {%- set items = kgather.artifact_ids(artifacts_relation) -%}
  {%- do kgather.check_column_names(items, ['group_id'] + reserved) -%}
select
  groups.group_id
  {%- for item in items %},
  by_item.cells[{{ kgather.quoted_text(item) }}] as {{ kgather.quoted_name(item) }}
  {%- endfor %}
from (select distinct group_id from {{ groups_relation }}) as groups
left join (
  -- One map per group: an aggregate with a filter for each column would read all cells as often as there are columns.
  select
    group_id,
    map_from_entries(list({'item': cast(item_id as varchar), 'cell': {{ values[kind] }}})) as cells
  from {{ long_relation }}
  where item_id is not null
  group by group_id
) as by_item using (group_id)
{%- endmacro %}

{#- The ids of the artifacts as text, in the order of their positions; none before anything runs. -#}
{% macro artifact_ids(artifacts_relation) %}
  {%- set ids = [] -%}
  {%- if execute -%}
    {%- set query = "select cast(item_id as varchar) as item_id from " ~ artifacts_relation ~ " order by position asc" -%}
    {%- for row in run_query(query).rows -%}
      {%- do ids.append(row[0]) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- do return(ids) -%}
{% endmacro %}

{#- Refuses ids that are no names of columns, or one and the same: letters count the same in either case. -#}
{% macro check_column_names(ids, reserved, what="artifact") %}
  {%- set taken = {} -%}
  {%- for name in reserved -%}
    {%- do taken.update({name | lower: "the column " ~ name}) -%}
  {%- endfor -%}
  {%- for id in ids -%}
    {%- if id is none or id | length == 0 -%}
      {% do exceptions.raise_compiler_error("kgather: an artifact without an id cannot be a column.") %}
    {%- elif id | lower in taken -%}
      {% do exceptions.raise_compiler_error(
        "kgather: the " ~ what ~ " '" ~ id ~ "' cannot be a column beside " ~ taken[id | lower]
        ~ ": names of columns are the same in upper and lower case. Rename one of them."
      ) %}
    {%- endif -%}
    {%- do taken.update({id | lower: "the artifact '" ~ id ~ "'"}) -%}
  {%- endfor -%}
{% endmacro %}

{% macro quoted_text(text) %}'{{ text | replace("'", "''") }}'{% endmacro %}

{% macro quoted_name(name) %}"{{ name | replace('"', '""') }}"{% endmacro %}
