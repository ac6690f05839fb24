{#-
Where the target is open for reading only, the SQL macros are in a database in memory (see create_sql_macros). Each
thread of dbt has a search path of its own, so every generic test looks there.
-#}
{% macro find_sql_macros() -%}
  {%- if execute -%}
    {%- set beside = run_query("select 1 from duckdb_databases() where database_name = 'kgather_macros'").rows -%}
    {%- if beside | length > 0 -%}
      {%- do run_query("set search_path = '" ~ adapter.quote(target.database) ~ ".main,kgather_macros.main'") -%}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}
