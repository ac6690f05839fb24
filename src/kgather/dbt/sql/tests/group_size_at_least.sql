{#-
Asserts that every group has at least k rows or, with a member_column, at least k different members.

  data_tests:
    - kgather.group_size_at_least:
        arguments: {group_column: group_id, k: 5}
    - kgather.group_size_at_least:
        arguments: {group_column: group_id, member_column: user_id, k: 5}

Groups are told apart as a reader sees them: `A` and `a` are two, whatever the column's collation. Rows without a group
(null) are a group like any other. A member that is null is nobody. An empty relation passes.
Failures are sizes of groups and how many groups have that size: never members, never groups.
-#}
{% test group_size_at_least(model, group_column, k, member_column=none, measure='people') %}
  {{- kgather.count_failures('group_size_at_least', measure) }}
  {{- kgather.check_number("group_size_at_least", "k", k, 1) }}
  {%- for argument, name in {"group_column": group_column, "member_column": member_column}.items() -%}
    {%- if not name and (argument == "group_column" or name is not none) or name is sequence and name is not string -%}
      {{ exceptions.raise_compiler_error(
        "group_size_at_least needs the name of one column as " ~ argument ~ ", but received: " ~ name
      ) }}
    {%- endif -%}
  {%- endfor %}
  {%- set counted = "*" if member_column is none else "distinct " ~ kgather.quoted_name(member_column) %}
  with group_sizes as (
    select count({{ counted }}) as group_size
    from {{ model }}
    group by encode(cast({{ kgather.quoted_name(group_column) }} as varchar))
  )
  select
    group_size,
    count(*) as groups,
    -- A group of whom no member is known is somebody's all the same.
    cast(sum(greatest(group_size, 1) * count(*)) over () as bigint) as people_at_risk,
    cast(sum(count(*)) over () as bigint) as classes_at_risk
  from group_sizes
  where group_size < {{ k }}
  group by group_size
{% endtest %}
