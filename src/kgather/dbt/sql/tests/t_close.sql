{#-
Asserts that the distribution of every sensitive column in every equivalence class is at most t away from that in the
whole relation.

  data_tests:
    - kgather.t_close:
        arguments: {column_names: [age, zip], sensitive_columns: [income], t: 0.2}

The distance is the earth mover's. ordered: true takes the values by their order, those next to each other being
1 / (m - 1) apart (m: how many distinct values there are); false takes all values as 1 apart. Not given: true for
columns of numbers, dates and times, false for others. Several sensitive columns are each looked at by themselves. Null
is a value like any other, in sensitive columns too, the last in the order. An empty relation passes. Failures are, for
each sensitive column and size of equivalence class, how many classes fail and the greatest t among them: never members,
never values.
-#}
{% test t_close(model, column_names, sensitive_columns, t, ordered=none, measure='people') %}
  {{- kgather.count_failures('t_close', measure) -}}
  {%- set columns = kgather.names_as_literals("t_close", "column_names", column_names) -%}
  {%- set sensitive = kgather.names_as_literals("t_close", "sensitive_columns", sensitive_columns) -%}
  {%- if execute and ordered is not none and ordered is not boolean -%}
    {{ exceptions.raise_compiler_error("t_close needs an ordered that is true or false, but received: " ~ ordered) }}
  {%- endif -%}
  {{ kgather.check_number("t_close", "t", t, 0, high=1, whole=false) }}
  with kg_tested as not materialized (
    select * from {{ model }}
  ),
  kg_failing as materialized (
    select *
    from kg_class_t(
      'kg_tested', {{ columns }}, {{ sensitive }}, {{ "null" if ordered is none else ordered | string | lower }}
    )
    where t > {{ t }}
  )
  select sensitive_column, class_size, max(t) as greatest_t, count(*) as classes, {{ kgather.at_risk("kg_failing") }}
  from kg_failing
  group by sensitive_column, class_size
{% endtest %}
