{#-
Asserts that every combination of values of the given columns belongs to at least k rows.

  data_tests:
    - kgather.k_anonymous:
        arguments: {column_names: [age, zip], k: 5}

Null is a value like any other. An empty relation passes. Failures are sizes of equivalence classes and how many
classes have that size: never members, never values.
-#}
{% test k_anonymous(model, column_names, k) %}
  {%- set columns = kgather.names_as_literals("k_anonymous", "column_names", column_names) -%}
  {{ kgather.check_number("k_anonymous", "k", k, 1) }}
  with kg_tested as not materialized (
    select * from {{ model }}
  )
  select class_size, classes
  from kg_class_sizes('kg_tested', {{ columns }})
  where class_size < {{ k }}
{% endtest %}
