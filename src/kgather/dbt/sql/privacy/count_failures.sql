{#-
What a generic test counts, so that warn_if and error_if mean it: people (or rows, one for each person) at risk, or, with
measure, classes. Every row of failures has the whole count, so that a limit of rows changes nothing. Where the test
passes there is no row, and 0 is counted.
-#}
{% macro count_failures(test, measure, allowed=["people", "classes"]) -%}
  {%- if measure not in allowed -%}
    {{ exceptions.raise_compiler_error(
      test ~ " needs a measure that is " ~ allowed | join(" or ") ~ ", but received: " ~ measure
    ) }}
  {%- endif -%}
  {{- kgather.find_sql_macros() -}}
  {{- config(fail_calc="coalesce(max(" ~ measure ~ "_at_risk), 0)") -}}
{%- endmacro %}

{#- The columns people_at_risk and classes_at_risk, by a relation of the classes that fail: each class counts once. -#}
{% macro at_risk(failing) -%}
  (
    select cast(sum(class_size) as bigint)
    from (select distinct class, class_size from {{ failing }})
  ) as people_at_risk,
  (select count(distinct class) from {{ failing }}) as classes_at_risk
{%- endmacro %}
