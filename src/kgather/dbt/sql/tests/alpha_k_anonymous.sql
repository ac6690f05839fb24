{#-
Asserts that every equivalence class has at least k rows, and that no sensitive value takes more than a share alpha of
one.

  data_tests:
    - kgather.alpha_k_anonymous:
        arguments: {column_names: [age, zip], sensitive_columns: [illness], alpha: 0.5, k: 5}

Several sensitive columns are each looked at by themselves. Null is a value like any other, in sensitive columns too. An
empty relation passes. Failures are, for each sensitive column and size of equivalence class, how many classes fail and
the greatest alpha among them: never members, never values.
-#}
{% test alpha_k_anonymous(model, column_names, sensitive_columns, alpha, k, measure='people') %}
  {{- kgather.count_failures('alpha_k_anonymous', measure) -}}
  {%- set columns = kgather.names_as_literals("alpha_k_anonymous", "column_names", column_names) -%}
  {%- set sensitive = kgather.names_as_literals("alpha_k_anonymous", "sensitive_columns", sensitive_columns) -%}
  {{ kgather.check_number("alpha_k_anonymous", "alpha", alpha, 0, high=1, whole=false, above=true) }}
  {{ kgather.check_number("alpha_k_anonymous", "k", k, 1) }}
  with kg_tested as not materialized (
    select * from {{ model }}
  ),
  kg_failing as materialized (
    select *
    from kg_class_alpha('kg_tested', {{ columns }}, {{ sensitive }})
    where class_size < {{ k }} or alpha > {{ alpha }}
  )
  select
    sensitive_column, class_size, max(alpha) as greatest_alpha, count(*) as classes, {{ kgather.at_risk("kg_failing") }}
  from kg_failing
  group by sensitive_column, class_size
{% endtest %}
