{#- What `auto` stands for, and which parts of the release the vars ask for. -#}

{#- Methods that gather on the artifact table. -#}
{% macro gathers_on_artifacts() %}
  {{ return(var('method') in ['k_likeness', 'k_member', 'mondrian']) }}
{% endmacro %}

{#- Methods that take a level for each user: a group may be smaller than k where its members want it. -#}
{% macro has_levels() %}
  {{ return(var('method') in ['bokg', 'customized']) }}
{% endmacro %}

{#- How the groups' ratings are made. -#}
{% macro homogenize() %}
  {% set by_method = {'epsilon': 'interval', 'gaussian_noise': 'noise'} %}
  {% if var('homogenize') != 'auto' %}
    {{ return(var('homogenize')) }}
  {% elif kgather.gathers_on_artifacts() %}
    {{ return('none') }}
  {% else %}
    {{ return(by_method.get(var('method'), 'predicted')) }}
  {% endif %}
{% endmacro %}

{#- How the artifact table is generalized: ndgh, dgh or none. -#}
{% macro generalize() %}
  {% if var('generalize') != 'auto' %}
    {{ return(var('generalize')) }}
  {% else %}
    {{ return('ndgh' if kgather.gathers_on_artifacts() else 'none') }}
  {% endif %}
{% endmacro %}

{#- Whether the release has one value for each group and item, as vectors or as cells. -#}
{% macro has_cells() %}
  {{ return(kgather.homogenize() in ['predicted', 'padded', 'pure', 'microaggregated']) }}
{% endmacro %}

{% macro is_low_rank() %}
  {{ return(kgather.has_cells() and var('cells') == 'low_rank') }}
{% endmacro %}

{#- Whether cells are added until every set of items is shown by enough groups. -#}
{% macro adds_cells() %}
  {{ return(kgather.has_cells() and not kgather.is_low_rank() and var('diversity_l') | string not in ['0', '1']) }}
{% endmacro %}

{#- Whether the diversity of sensitive ratings or columns is asked for. -#}
{% macro has_sensitive() %}
  {{ return(var('sensitive_l') is not none) }}
{% endmacro %}

{#-
Which metrics kgather__metrics holds: none, classes (what the groups alone tell) or all; what reads every rating is left
out of large inputs where the var metrics is auto. checked_input: its relation, which must be built before.
-#}
{% macro metrics_wanted(checked_input) %}
  {%- set most = 20000000 -%}
  {#- What is compiled only has not been built. -#}
  {%- if var('metrics') == 'auto' and execute and load_relation(checked_input) is not none -%}
    {%- set ratings = run_query("select staged_rows from " ~ checked_input).rows[0][0] -%}
    {%- do return("all" if ratings <= most else "classes") -%}
  {%- endif -%}
  {%- do return("none" if var('metrics') == 'none' else "all") -%}
{% endmacro %}
