{#- Stops a test that calls kgather's functions where the profile does not make them known. -#}
{% macro check_plugin(test) -%}
  {%- if execute -%}
    {%- set query -%}
      select count(*) from duckdb_functions() where function_name = 'kg_epsilon_neighbour_counts'
    {%- endset -%}
    {%- if run_query(query).rows[0][0] == 0 -%}
      {{ exceptions.raise_compiler_error(
        test ~ " calls functions of kgather that this database does not know: put "
        ~ "`plugins: [{module: kgather.plugin}]` into the target of your profile, and install kgather where dbt runs."
      ) }}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}

{#- A column that a generic test was given, quoted; refuses what is no name. -#}
{% macro named_column(test, argument, name) -%}
  {%- if name is not string or not name -%}
    {{ exceptions.raise_compiler_error(
      test ~ " needs the name of one column as " ~ argument ~ ", but received: " ~ name
    ) }}
  {%- endif -%}
  {{ kgather.quoted_name(name) }}
{%- endmacro %}

{#- Ratings as the list that kgather's functions take. Without a rating_column every row is a rating. -#}
{% macro rating_list(test, user_column, item_column, rating_column) -%}
  list({
    'user_id': {{ kgather.named_column(test, "user_column", user_column) }},
    'item_id': {{ kgather.named_column(test, "item_column", item_column) }},
    'rating': {{ 1 if rating_column is none else kgather.named_column(test, "rating_column", rating_column) }}
  })
{%- endmacro %}
