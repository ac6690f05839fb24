{#-
Whether the rows of a relation strictly ascend in the columns, in the order in which they are read: then no two of them
agree in all. One pass in a stream, so it is asked before the pairs are counted. False while dbt does not build or test.
-#}
{% macro strictly_ascends(relation, column_names, where="true") %}
  {% if not execute or flags.WHICH not in ('build', 'run', 'test') %}
    {{ return(false) }}
  {% endif %}
  {% set columns = [] %}
  {% set befores = [] %}
  {% for name in column_names %}
    {% do columns.append(adapter.quote(name)) %}
    {% do befores.append("lag(" ~ columns[-1] ~ ") over () as before_" ~ loop.index0) %}
  {% endfor %}
  {% set falls = ["true"] %}
  {% for column in columns | reverse %}
    {#- Equal in all of them is not ascending, and null is in no order. -#}
    {% set before = "before_" ~ (columns | length - loop.index) %}
    {% do falls.append(
      column ~ " is null or " ~ column ~ " < " ~ before ~ " or (" ~ column ~ " = " ~ before ~ " and (" ~ falls[-1] ~ "))"
    ) %}
  {% endfor %}
  {% set found = run_query(
    "select count(*) from (select " ~ (columns + befores) | join(", ") ~ " from " ~ relation ~ " where " ~ where
    ~ ") where " ~ falls[-1]
  ) %}
  {{ return(found.rows[0][0] == 0) }}
{% endmacro %}
