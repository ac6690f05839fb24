{#- What the package does before the first model: checks its vars, and creates its SQL macros in the target. -#}
{% macro on_run_start() %}
  {#- kgather's own command line has checked the settings and created the macros before it starts dbt. -#}
  {% if execute and not var('kgather_prepared', false) %}
    {% if flags.WHICH in ('run', 'build') %}{{ kgather.check_vars() }}{% endif %}
    {% do run_query(kgather.ddl()) %}
  {% endif %}
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
  {{ kgather.ddl__kg_frequencies() }}
  {{ kgather.ddl__kg_l_diversity() }}
  {{ kgather.ddl__kg_alpha() }}
  {{ kgather.ddl__kg_t_closeness() }}
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
