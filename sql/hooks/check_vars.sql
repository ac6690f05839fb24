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
    {% do problems.append("k is a whole number of at least 1, not " ~ tojson(k) ~ ".") %}
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
      {% do problems.append(name ~ " is one of " ~ allowed | join(', ') ~ ", not " ~ tojson(var(name)) ~ ".") %}
    {% endif %}
  {% endfor %}
  {% set least = {'rank': 1, 'bisection_tries': 1, 'min_ratings': 1, 'max_cells': 1, 'threads': 0} %}
  {% for name, low in least.items() %}
    {% if var(name) is not integer or var(name) is boolean or var(name) < low %}
      {% do problems.append(name ~ " is a whole number of at least " ~ low ~ ", not " ~ tojson(var(name)) ~ ".") %}
    {% endif %}
  {% endfor %}
  {% if var('seed') is not integer or var('seed') is boolean %}
    {% do problems.append("seed is a whole number, not " ~ tojson(var('seed')) ~ ".") %}
  {% endif %}
  {% set share = var('max_rejected_share') %}
  {% if share is not number or share is boolean or share < 0 or share > 1 %}
    {% do problems.append("max_rejected_share is a number between 0 and 1, not " ~ tojson(share) ~ ".") %}
  {% endif %}
  {% set not_rated = var('not_rated') %}
  {% if not_rated is not none and (not_rated is not number or not_rated is boolean) %}
    {% do problems.append("not_rated is a number, not " ~ tojson(not_rated) ~ ".") %}
  {% endif %}
  {% if var('solver_options') is not mapping %}
    {% do problems.append("solver_options is a mapping, as {epochs: 60}, not " ~ tojson(var('solver_options')) ~ ".") %}
  {% endif %}
  {% do problems.append(kgather.scale_problem()) if kgather.scale_problem() | trim %}
  {% do problems.append(kgather.cells_problem()) if kgather.cells_problem() | trim %}
  {% if problems %}
    {% do exceptions.raise_compiler_error(
      "kgather cannot start:\n  - " ~ problems | map('trim') | join("\n  - ")
      ~ "\nSet it in dbt_project.yml, under vars: kgather:"
    ) %}
  {% endif %}
{% endmacro %}

{% macro scale_problem() %}
  {%- set scale = var('scale') -%}
  {%- set listed = scale is sequence and scale is not string and scale is not mapping -%}
  {%- if scale is not none and (
    not listed or scale | length not in (2, 3) or scale | select('number') | list | length < scale | length
    or scale[0] >= scale[1] or (scale | length == 3 and scale[2] <= 0)
  ) -%}
    scale is [min, max] or [min, max, step] with min below max and a step above 0, not {{ tojson(scale) }}.
  {%- endif -%}
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
