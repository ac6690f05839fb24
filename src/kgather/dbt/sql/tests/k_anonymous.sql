{#-
Asserts that every combination of values of the given columns belongs to at least k rows.

  data_tests:
    - kgather.k_anonymous:
        arguments: {column_names: [age, zip], k: 5}

Null is a value like any other. An empty relation passes. Failures are sizes of equivalence classes and how many
classes have that size: never members, never values.
-#}
{% test k_anonymous(model, column_names, k, measure='people') %}
  {{- kgather.count_failures('k_anonymous', measure) -}}
  {%- set columns = kgather.names_as_literals("k_anonymous", "column_names", column_names) -%}
  {{ kgather.check_number("k_anonymous", "k", k, 1) }}
  with kg_tested as not materialized (
    select * from {{ model }}
  )
  select
    class_size,
    classes,
    cast(sum(class_size * classes) over () as bigint) as people_at_risk,
    cast(sum(classes) over () as bigint) as classes_at_risk
  from kg_class_sizes('kg_tested', {{ columns }})
  where class_size < {{ k }}
{% endtest %}
