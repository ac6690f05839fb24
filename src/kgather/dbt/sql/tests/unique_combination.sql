{#-
Asserts that no two rows agree in all of the given columns.

  data_tests:
    - kgather.unique_combination:
        arguments: {column_names: [group_id, item_id]}

Failures are numbers of rows, never values.
-#}
{% test unique_combination(model, column_names) %}
  {{- config(fail_calc="coalesce(sum(times * combinations), 0)") -}}
  {%- if kgather.strictly_ascends(model, column_names) %}
  -- Its rows strictly ascend: all are different.
  select 0 as times, 0 as combinations where false
  {%- else %}
  with repeated as (
    select count(*) as times
    from {{ model }}
    group by {% for column in column_names %}{{ adapter.quote(column) }}{{ ", " if not loop.last }}{% endfor %}
    having count(*) > 1
  )
  select times, count(*) as combinations from repeated group by times
  {%- endif %}
{% endtest %}
