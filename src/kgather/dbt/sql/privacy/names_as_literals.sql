{#- The names of columns that a generic test was given, as a list of SQL; refuses what is no list of names. -#}
{% macro names_as_literals(test, argument, names) -%}
  {%- if names is string or names is mapping or names is not iterable or not names -%}
    {{ exceptions.raise_compiler_error(test ~ " needs a list of " ~ argument ~ ", but received: " ~ names) }}
  {%- endif -%}
  [{% for name in names %}'{{ name | string | replace("'", "''") }}'{{ ", " if not loop.last }}{% endfor %}]
{%- endmacro %}

{#-
Refuses an argument of a generic test that is no number from low on, or up to high; with whole, no whole number.
Not while dbt parses: what comes from a var may not be known yet, and check_vars has more to say of it.
-#}
{% macro check_number(test, argument, value, low, high=none, whole=true, above=false) -%}
  {%- if execute -%}
    {%- if
      value is not number or value is boolean or (whole and value is not integer) or not value >= low
      or (above and value == low) or (high is not none and value > high) or value == value + 1
    -%}
      {{ exceptions.raise_compiler_error(
        test ~ " needs a " ~ ("whole " if whole else "") ~ "number " ~ argument
        ~ (" above " if above else " of at least ") ~ low ~ (" and at most " ~ high if high is not none else "")
        ~ ", but received: " ~ value
      ) }}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}
