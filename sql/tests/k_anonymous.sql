{#-
Asserts that every combination of values of the given columns belongs to at least k rows.

  data_tests:
    - kgather.k_anonymous:
        arguments: {column_names: [age, zip], k: 5}

Null is a value like any other. An empty relation passes. Failures are sizes of equivalence classes and how many
classes have that size: never members, never values.
-#}
{% test k_anonymous(model, column_names, k) %}
  {% if column_names is string or not column_names %}
    {{ exceptions.raise_compiler_error("k_anonymous needs a list of column_names, but received: " ~ column_names) }}
  {% endif %}
  {#- Not while dbt parses: check_vars has more to say of a k that comes from a var. -#}
  {% if execute and (k is not integer or k is boolean or k < 1) %}
    {{ exceptions.raise_compiler_error("k_anonymous needs a whole number k of at least 1, but received: " ~ k) }}
  {% endif %}
  with equivalence_classes as (
    select count(*) as class_size
    from {{ model }}
    group by {% for column in column_names %}{{ adapter.quote(column) }}{{ ", " if not loop.last }}{% endfor %}
  )
  select class_size, count(*) as classes
  from equivalence_classes
  where class_size < {{ k }}
  group by class_size
{% endtest %}
