{#- What the package does before the first model: checks its vars, and makes its SQL macros known to the target. -#}
{% macro on_run_start() %}
  {#- kgather's own command line has checked the settings and created the macros before it starts dbt. -#}
  {% if execute and not var('kgather_prepared', false) %}
    {#- A project that only anonymizes or tests tables builds no release, and has nothing to say of ratings. -#}
    {% if kgather.builds_models_of('kgather') %}
      {% if kgather.releases() %}{{ kgather.check_releases() }}{% else %}{{ kgather.check_vars() }}{% endif %}
    {% endif %}
    {{ kgather.create_sql_macros() }}
  {% endif %}
{% endmacro %}

{#- Whether this run builds models of a package. -#}
{% macro builds_models_of(package) %}
  {% set built = [] %}
  {% set first = 'model.' ~ package ~ '.' %}
  {% for one in selected_resources | default([first]) if one.startswith(first) %}{% do built.append(one) %}{% endfor %}
  {{ return(flags.WHICH in ('run', 'build') and built | length > 0) }}
{% endmacro %}

{#-
Creates the SQL macros in the target's database, unless it has these very ones. A database that is open for reading only
gets none: they go into a database in memory, beside it, where the generic tests look for them (find_sql_macros).
-#}
{% macro create_sql_macros() %}
  {% if not kgather.has_sql_macros() %}
    {% set current = run_query(
      "select database_name, readonly from duckdb_databases() where database_name = current_database()"
    ).rows[0] %}
    {% if current[1] %}
      {% do run_query("attach if not exists ':memory:' as kgather_macros (read_write)") %}
      {% do run_query("use kgather_macros") %}
      {% do run_query(kgather.sql_macros()) %}
      {% do run_query("use " ~ adapter.quote(current[0])) %}
    {% else %}
      {% do run_query(kgather.sql_macros()) %}
    {% endif %}
  {% endif %}
{% endmacro %}

{#- All SQL macros and, last, one that says which they are. -#}
{% macro sql_macros() %}
  {% set text = kgather.ddl() %}
  {{ return(text ~ "create or replace macro kg_macros() as '" ~ local_md5(text) ~ "';") }}
{% endmacro %}

{#- Whether the macros that an unqualified name finds are those of this version of the package. -#}
{% macro has_sql_macros() %}
  {% set found = run_query(
    "select macro_definition from duckdb_functions() where function_name = 'kg_macros' "
    ~ "and database_name = current_database() and schema_name = 'main'"
  ).rows %}
  {{ return(found | length > 0 and found[0][0] == "'" ~ local_md5(kgather.ddl()) ~ "'") }}
{% endmacro %}

{#- The text that creates all SQL macros, those first that others call. -#}
{% macro ddl() %}
  {{ kgather.ddl__kg_cell() }}
  {{ kgather.ddl__kg_digits() }}
  {{ kgather.ddl__kg_pure() }}
  {{ kgather.ddl__kg_homogenize() }}
  {{ kgather.ddl__kg_group_vectors() }}
  {{ kgather.ddl__kg_predicted() }}
  {{ kgather.ddl__kg_best() }}
  {{ kgather.ddl__kg_popular() }}
  {{ kgather.ddl__kg_nearest_groups() }}
  {{ kgather.ddl__kg_rated_cells() }}
  {{ kgather.ddl__kg_padded_cell() }}
  {{ kgather.ddl__kg_padded() }}
  {{ kgather.ddl__kg_microaggregate() }}
  {{ kgather.ddl__kg_generalize_sets() }}
  {{ kgather.ddl__kg_generalize_ranges() }}
  {{ kgather.ddl__kg_intervals() }}
  {{ kgather.ddl__kg_clip_to_intervals() }}
  {{ kgather.ddl__kg_gaussian_noise() }}
  {{ kgather.ddl__kg_expand() }}
  {{ kgather.ddl__kg_quoted() }}
  {{ kgather.ddl__kg_as_seen() }}
  {{ kgather.ddl__kg_class_sizes() }}
  {{ kgather.ddl__kg_classed() }}
  {{ kgather.ddl__kg_class_frequencies() }}
  {{ kgather.ddl__kg_class_l() }}
  {{ kgather.ddl__kg_class_alpha() }}
  {{ kgather.ddl__kg_class_t() }}
  {{ kgather.ddl__kg_class_hierarchical_t() }}
  {{ kgather.ddl__kg_frequencies() }}
  {{ kgather.ddl__kg_l_diversity() }}
  {{ kgather.ddl__kg_alpha() }}
  {{ kgather.ddl__kg_t_closeness() }}
  {{ kgather.ddl__kg_hierarchical_t_closeness() }}
  {{ kgather.ddl__kg_column_sets() }}
  {{ kgather.ddl__kg_risk() }}
  {{ kgather.ddl__kg_risk_conditions() }}
  {{ kgather.ddl__kg_discernibility() }}
  {{ kgather.ddl__kg_average_class_size() }}
  {{ kgather.ddl__kg_generalized_information_loss() }}
  {{ kgather.ddl__kg_shown_errors() }}
  {{ kgather.ddl__kg_coverage() }}
  {{ kgather.ddl__kg_entries_added() }}
  {{ kgather.ddl__kg_popularity_kept() }}
  {{ kgather.ddl__kg_signs_of_people() }}
  {{ kgather.ddl__kg_signs_of_no_scale() }}
{% endmacro %}
