{#-
The body of a model that shows a table of people anonymized: kg_anonymize with settings as arguments.

  {{ kgather.anonymize(ref('patients'), k=10, quasi_identifiers={'age': {'step': 5}, 'zip': {'kind': 'prefix'}},
                       sensitive=['illness'], l=3) }}

relation: one row for each person, or several with unit and rows_per_person or aggregate. The other arguments are the
settings of docs/tables.md. Needs the plugin in the profile. Materialize the model as a table: a view would make other
classes for other rows.
-#}
{% macro anonymize(relation) %}
  {{- kgather.anonymize_with('kg_anonymize', relation, kwargs, varargs) -}}
{% endmacro %}

{#-
The body of a model of who looks the same in what kgather.anonymize makes with the same arguments: (unit, group_id). Other
models of the same people take it as `within`, and k holds for all of them together; or as `beside`, to be measured. The
model says who is in which class: keep it where the people's own table is.
-#}
{% macro anonymize_groups(relation) %}
  {{- kgather.anonymize_with('kg_anonymize_groups', relation, kwargs, varargs) -}}
{% endmacro %}

{#- The one query of both. Relations among the settings become their names. unnamed: arguments that nobody named. -#}
{% macro anonymize_with(function, relation, settings, unnamed) %}
  {%- set called = function | replace('kg_', 'kgather.', 1) -%}
  {%- if unnamed or relation is not defined or relation is none -%}
    {{ exceptions.raise_compiler_error(
      called ~ " takes the relation first, and everything else by its name. Write for example: "
      ~ called ~ "(ref('people'), k=10, unit='id', quasi_identifiers=['age', 'zip'])"
    ) }}
  {%- endif -%}
  {%- if execute and model is defined and model.config.materialized == 'view' -%}
    {{ exceptions.raise_compiler_error(
      called ~ " needs a model that is materialized as a table: config(materialized='table'). A view would be "
      ~ "anonymized anew for whoever reads it, and would need kgather there."
    ) }}
  {%- endif -%}
  {%- if execute -%}
    {%- set known = run_query("select 1 from duckdb_functions() where function_name = 'kg_recode' limit 1") -%}
    {%- if known is none or known.rows | length == 0 -%}
      {{ exceptions.raise_compiler_error(
        called ~ " needs kgather's plugin. Add it to the output in profiles.yml: plugins: [{module: kgather.plugin}]"
      ) }}
    {%- endif -%}
  {%- endif -%}
  {%- set asked = dict(settings) -%}
  {%- if asked.get('within') is not none -%}
    {%- do asked.update({'within': asked['within'] | string}) -%}
  {%- endif -%}
  {%- if asked.get('beside') -%}
    {%- set beside = asked['beside'] if asked['beside'] is iterable and asked['beside'] is not string else [asked['beside']] -%}
    {%- do asked.update({'beside': beside | map('string') | list}) -%}
  {%- endif -%}
  {%- if flags.EMPTY %}
  {#- With --empty the relation is a query, and has no rows to make classes of: only its columns are asked for. #}
  {{- kgather.columns_of_anonymized(function, relation, asked) }}
  {%- else %}
  select * from {{ function }}('{{ relation | string | replace("'", "''") }}', '{{ tojson(asked) | replace("'", "''") }}'::json)
  {%- endif %}
{%- endmacro %}

{#- No row, but the columns that there are with rows: quasi-identifiers as texts, the others as they are. -#}
{% macro columns_of_anonymized(function, relation, settings) %}
  {%- set columns = [] %}
  {%- if function == "kg_anonymize_groups" %}
    {%- do columns.extend([kgather.quoted_name(settings["unit"]), "cast(null as bigint) as group_id"]) %}
  {%- else %}
    {%- if settings.get("pseudonym") %}
      {%- do columns.append("cast(null as varchar) as " ~ kgather.quoted_name(settings["pseudonym"])) %}
    {%- endif %}
    {%- for name in settings.get("quasi_identifiers") or [] %}
      {%- do columns.append("cast(" ~ kgather.quoted_name(name) ~ " as varchar) as " ~ kgather.quoted_name(name)) %}
    {%- endfor %}
    {%- for role in ["sensitive", "others"] %}
      {%- for name in settings.get(role) or [] %}{% do columns.append(kgather.quoted_name(name)) %}{% endfor %}
    {%- endfor %}
  {%- endif %}
  select {{ columns | join(", ") or "*" }} from {{ relation }} where false
{%- endmacro %}
