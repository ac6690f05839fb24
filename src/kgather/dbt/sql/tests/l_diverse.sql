{#-
Asserts that every sensitive column has diversity l or more in every equivalence class.

  data_tests:
    - kgather.l_diverse:
        arguments: {column_names: [age, zip], sensitive_columns: [illness], l: 3}
    - kgather.l_diverse:
        arguments: {column_names: [age, zip], sensitive_columns: [illness, income], l: 3, kind: recursive, c: 2}

kind: distinct (default), at least l different values; entropy, an entropy of at least log l; recursive, with c:
r_1 < c * (r_l + ... + r_m), where r_1 >= r_2 >= ... is how often the values occur. Several sensitive columns are each
looked at by themselves. Null is a value like any other, in sensitive columns too. An empty relation passes. Failures
are, for each sensitive column and size of equivalence class, how many classes fail and the least l among them: never
members, never values.
-#}
{% test l_diverse(model, column_names, sensitive_columns, l, kind="distinct", c=none, measure='people') %}
  {{- kgather.count_failures('l_diverse', measure) -}}
  {%- set columns = kgather.names_as_literals("l_diverse", "column_names", column_names) -%}
  {%- set sensitive = kgather.names_as_literals("l_diverse", "sensitive_columns", sensitive_columns) -%}
  {%- if execute and kind not in ["distinct", "entropy", "recursive"] -%}
    {{ exceptions.raise_compiler_error(
      "l_diverse needs a kind that is distinct, entropy or recursive, but received: " ~ kind
    ) }}
  {%- endif -%}
  {{ kgather.check_number("l_diverse", "l", l, 1, whole=kind != "entropy") }}
  {%- if kind == "recursive" -%}
    {{ kgather.check_number("l_diverse", "c", c, 0, whole=false, above=true) }}
  {%- elif execute and c is not none -%}
    {{ exceptions.raise_compiler_error("l_diverse takes a c with kind recursive only, but received: " ~ c) }}
  {%- endif %}
  with kg_tested as not materialized (
    select * from {{ model }}
  ),
  kg_failing as materialized (
    select *
    from kg_class_l(
      'kg_tested', {{ columns }}, {{ sensitive }}, '{{ kind }}', {{ c if kind == "recursive" else "null" }}
    )
    where l < {{ l }}
  )
  select sensitive_column, class_size, min(l) as least_l, count(*) as classes, {{ kgather.at_risk("kg_failing") }}
  from kg_failing
  group by sensitive_column, class_size
{% endtest %}
