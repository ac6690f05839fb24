{#- Refuses values that no model could make sense of, before any work, with the var and what it may be. -#}
{% macro check_vars() %}
  {% set problems = [] %}
  {% if not var('ratings') %}
    {% do problems.append("ratings is not set. Name the model that holds your ratings.") %}
  {% endif %}
  {% set k = var('k') %}
  {% if k is none %}
    {% do problems.append("k is not set. Give the number of users in the smallest group.") %}
  {% elif k is not integer or k is boolean or k < 1 %}
    {% do problems.append("k is a whole number of at least 1, not " ~ k ~ ".") %}
  {% endif %}
  {% set choices = {
    'method': ['bkg'],
    'solver': ['als', 'funk'],
    'metric': ['prediction', 'preference'],
    'homogenize': ['predicted', 'padded', 'pure'],
    'single_rater': ['pad', 'drop', 'keep'],
    'item_id_type': ['bigint', 'varchar'],
  } %}
  {% for name, allowed in choices.items() %}
    {% if var(name) not in allowed %}
      {% do problems.append(name ~ " is one of " ~ allowed | join(', ') ~ ", not " ~ var(name) ~ ".") %}
    {% endif %}
  {% endfor %}
  {% for name in ['rank', 'bisection_tries', 'min_ratings', 'max_cells'] %}
    {% if var(name) is not integer or var(name) < 1 %}
      {% do problems.append(name ~ " is a whole number of at least 1, not " ~ var(name) ~ ".") %}
    {% endif %}
  {% endfor %}
  {% do problems.append(kgather.cells_problem()) if kgather.cells_problem() | trim %}
  {% if problems %}
    {% do exceptions.raise_compiler_error(
      "kgather cannot start:\n  - " ~ problems | map('trim') | join("\n  - ")
      ~ "\nSet it in dbt_project.yml, under vars: kgather:"
    ) %}
  {% endif %}
{% endmacro %}

{% macro cells_problem() %}
  {%- set cells = var('cells') | string -%}
  {%- if cells not in ['all', 'rated', 'low_rank'] and not kgather.top_items() | trim -%}
    cells is all, rated, low_rank or top N (as top 100), not {{ cells }}.
  {%- elif cells == 'low_rank' and var('homogenize') != 'predicted' -%}
    cells: low_rank goes with homogenize: predicted only, since only predictions have a low rank.
  {%- endif -%}
{% endmacro %}

{#- N where the var cells is `top N`, else nothing. -#}
{% macro top_items() %}
  {%- set words = (var('cells') | string).split() -%}
  {%- if words | length == 2 and words[0] == 'top' and words[1].isdigit() and words[1] | int > 0 -%}
    {{ words[1] }}
  {%- endif -%}
{% endmacro %}
