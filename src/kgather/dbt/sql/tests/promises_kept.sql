{#-
Asserts that every check of an audit table passed.

  data_tests:
    - kgather.promises_kept
-#}
{% test promises_kept(model) %}
  select "check", promised, measured
  from {{ model }}
  where not passed
{% endtest %}
