{#-
Asserts that no query condition singles out fewer than k rows: none that compares up to m of the given columns with a
value ("column = value and ...") or with null ("column is null") matches 1 to k - 1 rows.

  data_tests:
    - kgather.no_risk_query_conditions:
        arguments: {column_names: [item_1, item_2, item_3, item_4], k: 5, m: 2}

With nulls: false, null cannot be asked for. An empty relation passes, and so does one that is k-anonymous in all of the
columns. Failures are sets of columns, how many rows conditions on them match and how many conditions match so many:
never members, never values.
-#}
{% test no_risk_query_conditions(model, column_names, k, m, nulls=true, measure='people') %}
  {{- kgather.count_failures('no_risk_query_conditions', measure) -}}
  {%- set columns = kgather.names_as_literals("no_risk_query_conditions", "column_names", column_names) -%}
  {%- if execute and nulls is not boolean -%}
    {{ exceptions.raise_compiler_error(
      "no_risk_query_conditions needs nulls that are true or false, but received: " ~ nulls
    ) }}
  {%- endif -%}
  {{ kgather.check_number("no_risk_query_conditions", "k", k, 1) }}
  {{- kgather.check_number("no_risk_query_conditions", "m", m, 1) }}
  with kg_tested as not materialized (
    select * from {{ model }}
  )
  select
    column_names,
    matched_rows,
    conditions,
    rows_at_risk as people_at_risk,
    cast(sum(conditions) over () as bigint) as classes_at_risk
  from kg_risk('kg_tested', {{ columns }}, {{ k }}, {{ m }}, {{ nulls | string | lower }})
{% endtest %}
