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
    'method': [
      'bkg', 'bokg', 'customized', 'bounded_t_means', 'mdav', 'k_likeness', 'k_member', 'mondrian', 'epsilon',
      'gaussian_noise',
    ],
    'solver': ['als', 'funk', 'none'],
    'metric': ['prediction', 'preference', 'filled'],
    'fill': ['median', 'prediction'],
    'refine': ['auto', true, false],
    'sensitive_diversity': ['distinct', 'entropy', 'recursive', 'deviation'],
    'homogenize': ['auto', 'predicted', 'padded', 'pure', 'microaggregated', 'interval', 'noise', 'none'],
    'single_rater': ['pad', 'drop', 'keep'],
    'generalize': ['auto', 'ndgh', 'dgh', 'none'],
    'noise_clip': [true, false],
    'metrics': ['auto', 'all', 'none'],
    'i_know_this_is_not_anonymous': [true, false],
    'item_id_type': ['bigint', 'varchar'],
  } %}
  {% for name, allowed in choices.items() %}
    {#- 1 is no true, though Python thinks so. -#}
    {% if var(name) not in allowed or (var(name) is number and var(name) is not boolean) %}
      {% do problems.append(
        name ~ " is one of " ~ allowed | join(', ') | lower ~ ", not " ~ tojson(var(name)) ~ "."
      ) %}
    {% endif %}
  {% endfor %}
  {% set least = {
    'rank': 1, 'bisection_tries': 1, 'min_ratings': 1, 'max_cells': 1, 'threads': 0, 'block_size': 0,
    'diversity_b': 1, 'diversity_l': 1,
  } %}
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
  {% for name in ('solver_options', 'method_options') if var(name) is not mapping %}
    {% do problems.append(name ~ " is a mapping, as {rounds: 20}, not " ~ tojson(var(name)) ~ ".") %}
  {% endfor %}
  {% for name in ('personal_columns', 'sensitive_columns', 'sensitive_items') %}
    {% if var(name) is string or var(name) is mapping or var(name) is not sequence %}
      {% do problems.append(name ~ " is a list, as [age, gender], not " ~ tojson(var(name)) ~ ".") %}
    {% endif %}
  {% endfor %}
  {% for name in ('epsilon', 'noise_sigma', 'popular_noise') if var(name) is not number or var(name) is boolean or var(name) < 0 %}
    {% do problems.append(name ~ " is a number of at least 0, not " ~ tojson(var(name)) ~ ".") %}
  {% endfor %}
  {% do kgather.find_contradictions(problems) %}
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
  {%- set some = kgather.top_items() | trim or kgather.best_items() | trim or kgather.popular_items() | trim -%}
  {%- if cells not in ['all', 'rated', 'low_rank'] and not some -%}
    cells is all, rated, low_rank, top N, best N or popular N (as top 100), not {{ cells }}.
  {%- elif kgather.best_items() | trim and kgather.homogenize() not in ['predicted', 'padded'] -%}
    cells: best N goes with homogenize: predicted or padded, since it shows what is predicted best.
  {%- elif kgather.popular_items() | trim and kgather.homogenize() not in ['predicted', 'padded'] -%}
    cells: popular N goes with homogenize: predicted or padded, since it shows items that nobody may have rated.
  {%- elif cells == 'low_rank' and kgather.homogenize() not in ['predicted', 'none'] -%}
    cells: low_rank goes with homogenize: predicted only, since only predictions have a low rank.
  {%- endif -%}
{% endmacro %}

{#- Adds to the list what two vars say against each other. -#}
{% macro find_contradictions(problems) %}
  {% set form = kgather.homogenize() %}
  {% set artifacts = var('artifacts') %}
  {% if artifacts is string or artifacts is mapping or artifacts is boolean or not artifacts
    or (artifacts is number and (artifacts is not integer or artifacts < 1)) %}
    {% do problems.append(
      "artifacts is the number of items to take, as 10, or a list of item ids, not " ~ tojson(artifacts) ~ "."
    ) %}
  {% endif %}
  {% if (var('method') == 'gaussian_noise') != (form == 'noise') %}
    {% do problems.append("method: gaussian_noise and homogenize: noise go together only.") %}
  {% endif %}
  {% if var('method') == 'gaussian_noise' and not var('i_know_this_is_not_anonymous') %}
    {% do problems.append(
      "method: gaussian_noise gives no k-anonymity: every user stands alone. Where that is meant, set "
      ~ "i_know_this_is_not_anonymous: true."
    ) %}
  {% endif %}
  {% if form == 'none' and kgather.generalize() == 'none' %}
    {% do problems.append("homogenize: none and generalize: none leave nothing to release.") %}
  {% endif %}
  {% if var('method') == 'gaussian_noise' and kgather.generalize() != 'none' %}
    {% do problems.append("method: gaussian_noise has no groups to generalize: set generalize: none.") %}
  {% endif %}
  {% if kgather.has_levels() and not (var('level_column') and var('user_attributes')) %}
    {% do problems.append(
      "method: " ~ var('method') ~ " needs user_attributes and level_column: the group size each user asks for."
    ) %}
  {% elif var('level_column') and not kgather.has_levels() %}
    {% do problems.append("level_column goes with method: bokg or customized; the others give every user k.") %}
  {% endif %}
  {% if (var('personal_columns') or var('sensitive_columns')) and not var('user_attributes') %}
    {% do problems.append("personal_columns and sensitive_columns are columns of user_attributes, which is not set.") %}
  {% endif %}
  {% if var('personal_columns') and kgather.generalize() == 'none' %}
    {% do problems.append("personal_columns are shown by the generalized table only: set generalize: ndgh or dgh.") %}
  {% endif %}
  {% if var('solver') == 'none' %}
    {% if form in ['predicted', 'padded'] or (form == 'pure' and var('single_rater') == 'pad') %}
      {% do problems.append(
        "solver: none learns nothing to homogenize with: set homogenize: microaggregated, or pure with "
        ~ "single_rater: drop or keep."
      ) %}
    {% endif %}
    {% if var('fill') == 'prediction' %}
      {% do problems.append("fill: prediction needs a solver: als or funk.") %}
    {% endif %}
    {% if var('metric') != 'filled' and not kgather.gathers_on_artifacts() and var('method') != 'gaussian_noise' %}
      {% do problems.append("solver: none leaves users nothing to be compared in but metric: filled.") %}
    {% endif %}
  {% endif %}
  {% if var('block_size') and var('method') not in ['bkg', 'bounded_t_means', 'mdav'] %}
    {% do problems.append("block_size goes with method: bkg, bounded_t_means or mdav.") %}
  {% endif %}
  {% if var('sensitive_l') is not none %}
    {% if var('sensitive_l') is not number or var('sensitive_l') is boolean or var('sensitive_l') <= 0 %}
      {% do problems.append("sensitive_l is a number above 0, not " ~ tojson(var('sensitive_l')) ~ ".") %}
    {% endif %}
    {% if not (var('sensitive_items') or var('sensitive_columns')) %}
      {% do problems.append("sensitive_l needs sensitive_items or sensitive_columns.") %}
    {% endif %}
    {% if (var('sensitive_diversity') == 'recursive') != (var('sensitive_c') is not none) %}
      {% do problems.append("sensitive_c goes with sensitive_diversity: recursive, and only with it.") %}
    {% endif %}
    {% if kgather.has_levels() or var('method') == 'gaussian_noise' %}
      {% do problems.append(
        "sensitive_l cannot be kept by method: " ~ var('method') ~ ", which lets users stand alone."
      ) %}
    {% endif %}
  {% endif %}
  {% if var('diversity_l') | string not in ['0', '1'] %}
    {% if not kgather.has_cells() or kgather.is_low_rank() or form == 'microaggregated' %}
      {% do problems.append(
        "diversity_l goes with homogenize: pure, padded or predicted and cells: all, rated or top N."
      ) %}
    {% endif %}
    {% if var('solver') == 'none' %}
      {% do problems.append("diversity_l needs a solver: added cells hold predictions.") %}
    {% endif %}
    {% if var('diversity_b') not in [1, 2, 3] %}
      {% do problems.append("diversity_b is 1, 2 or 3, not " ~ tojson(var('diversity_b')) ~ ".") %}
    {% endif %}
  {% endif %}
  {% set hierarchy_problem = kgather.hierarchy_problem() | trim if kgather.generalize() == 'dgh' else '' %}
  {% if hierarchy_problem %}
    {% do problems.append(hierarchy_problem) %}
  {% endif %}
{% endmacro %}

{#- N where the var cells is `top N`, else nothing. -#}
{% macro top_items() %}{{ kgather.number_after('top') }}{% endmacro %}

{#- N where the var cells is `best N`, else nothing. -#}
{% macro best_items() %}{{ kgather.number_after('best') }}{% endmacro %}

{#- N where the var cells is `popular N`, else nothing. -#}
{% macro popular_items() %}{{ kgather.number_after('popular') }}{% endmacro %}

{% macro number_after(word) %}
  {%- set words = (var('cells') | string).split() -%}
  {%- if words | length == 2 and words[0] == word and words[1].isdigit() and words[1] | int > 0 -%}
    {{ words[1] }}
  {%- endif -%}
{% endmacro %}
