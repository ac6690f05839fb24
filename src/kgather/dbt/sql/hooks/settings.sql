{#- Written by `make generate` from src/kgather/_settings, _methods and _forms; do not edit. -#}

{#- The defaults of all settings; none where there is none. -#}
{% macro setting_defaults() %}
  {{ return({
    'scale': none,
    'not_rated': none,
    'repeats': none,
    'rating_cap': none,
    'rating_log': false,
    'min_ratings': 1,
    'max_rejected_share': 0.01,
    'items': none,
    'items_confirmed': false,
    'user_attributes': none,
    'personal_columns': [],
    'personal': 'generalize',
    'personal_shared': [],
    'personal_recoding': {},
    'level_column': none,
    'k': none,
    'method': 'bkg',
    'method_options': {},
    'solver': 'als',
    'solver_options': {},
    'rank': 3,
    'metric': 'prediction',
    'fill': 'median',
    'bisection_tries': 10,
    'refine': 'auto',
    'block_size': 0,
    'artifacts': 10,
    'categorical_artifacts': [],
    'epsilon': 1,
    'seed': 0,
    'threads': 0,
    'sensitive_items': [],
    'sensitive_columns': [],
    'sensitive_diversity': 'distinct',
    'sensitive_l': none,
    'sensitive_c': none,
    'homogenize': 'auto',
    'cells': 'all',
    'popular_noise': 1,
    'min_raters': none,
    'rare_items': 'prior',
    'item_noise': none,
    'item_epsilon': none,
    'item_delta': 1e-06,
    'outliers': 0.98,
    'single_rater': 'pad',
    'max_cells': 50000000,
    'diversity_b': 1,
    'diversity_l': 1,
    'generalize': 'auto',
    'hierarchy': 'halves',
    'noise_sigma': 1,
    'noise_clip': true,
    'metrics': 'auto',
    'i_know_this_is_not_anonymous': false,
    'history': false,
    'reserve': none,
    'keep_group_ids': false,
    'ratings': none,
    'user_column': none,
    'item_column': none,
    'rating_column': none,
    'time_column': none,
    'item_id_type': 'bigint',
    'method_facts': none,
    'release_id': none,
    'released_on': none,
    'releases': {},
    'within': none,
  }) }}
{% endmacro %}

{#- The version of this package, which packages of releases were written by. -#}
{% macro package_version() %}
  {{ return('0.1.0') }}
{% endmacro %}

{#- Names that are no other project's: they are read without the prefix, too, with a warning. -#}
{% macro old_setting_names() %}
  {{ return([
    'not_rated',
    'min_ratings',
    'max_rejected_share',
    'user_attributes',
    'personal_columns',
    'level_column',
    'method_options',
    'bisection_tries',
    'sensitive_items',
    'sensitive_columns',
    'sensitive_diversity',
    'sensitive_l',
    'sensitive_c',
    'homogenize',
    'popular_noise',
    'min_raters',
    'item_noise',
    'item_epsilon',
    'item_delta',
    'single_rater',
    'diversity_b',
    'diversity_l',
    'noise_sigma',
    'noise_clip',
    'i_know_this_is_not_anonymous',
    'user_column',
    'item_column',
    'rating_column',
    'time_column',
    'item_id_type',
    'method_facts',
  ]) }}
{% endmacro %}

{#- Vars that dbt reads before there are any models. -#}
{% macro settings_outside() %}
  {{ return(['release_database']) }}
{% endmacro %}

{#- Settings that all releases of a chain have in common. -#}
{% macro names_of_chain() %}
  {{ return(['k', 'homogenize', 'cells', 'solver', 'solver_options', 'rank', 'min_raters', 'rare_items', 'item_noise', 'item_epsilon', 'item_delta', 'outliers', 'single_rater', 'scale', 'items', 'repeats', 'rating_cap', 'rating_log', 'diversity_b', 'diversity_l']) }}
{% endmacro %}

{#- What SQL has to know of the methods; of one that another package registers, `method_facts` says it. -#}
{% macro method_facts(name) %}
  {% set known = {
    'bkg': {'gathers_on': 'vectors', 'levels': false, 'anonymous': true, 'refines': true, 'blocks': true, 'categories': false, 'form': 'predicted', 'generalization': 'none', 'forms': none, 'tells': []},
    'bokg': {'gathers_on': 'vectors', 'levels': true, 'anonymous': true, 'refines': false, 'blocks': false, 'categories': false, 'form': 'predicted', 'generalization': 'none', 'forms': none, 'tells': []},
    'bounded_t_means': {'gathers_on': 'vectors', 'levels': false, 'anonymous': true, 'refines': true, 'blocks': true, 'categories': false, 'form': 'predicted', 'generalization': 'none', 'forms': none, 'tells': ['bins']},
    'customized': {'gathers_on': 'vectors', 'levels': true, 'anonymous': true, 'refines': true, 'blocks': false, 'categories': false, 'form': 'predicted', 'generalization': 'none', 'forms': none, 'tells': []},
    'epsilon': {'gathers_on': 'vectors', 'levels': false, 'anonymous': true, 'refines': false, 'blocks': false, 'categories': false, 'form': 'interval', 'generalization': 'none', 'forms': none, 'tells': ['unchanged', 'left_out']},
    'k_likeness': {'gathers_on': 'artifacts', 'levels': false, 'anonymous': true, 'refines': false, 'blocks': false, 'categories': true, 'form': 'none', 'generalization': 'ndgh', 'forms': none, 'tells': []},
    'k_member': {'gathers_on': 'artifacts', 'levels': false, 'anonymous': true, 'refines': false, 'blocks': false, 'categories': true, 'form': 'none', 'generalization': 'ndgh', 'forms': none, 'tells': []},
    'mdav': {'gathers_on': 'vectors', 'levels': false, 'anonymous': true, 'refines': true, 'blocks': true, 'categories': false, 'form': 'predicted', 'generalization': 'none', 'forms': none, 'tells': []},
    'mondrian': {'gathers_on': 'artifacts', 'levels': false, 'anonymous': true, 'refines': false, 'blocks': false, 'categories': true, 'form': 'none', 'generalization': 'ndgh', 'forms': none, 'tells': []},
    'gaussian_noise': {'gathers_on': 'vectors', 'levels': false, 'anonymous': false, 'refines': false, 'blocks': false, 'categories': false, 'form': 'noise', 'generalization': 'none', 'forms': ['noise'], 'tells': []},
  } %}
  {% set other = {'gathers_on': 'vectors', 'levels': false, 'anonymous': true, 'refines': false, 'blocks': false, 'categories': false, 'form': 'predicted', 'generalization': 'none', 'forms': none, 'tells': []} %}
  {% set other = kgather.setting('method_facts') or other %}
  {{ return(known[name] if name is string and name in known else other) }}
{% endmacro %}

{#- What SQL has to know of the forms. -#}
{% macro form_facts(name) %}
  {% set known = {
    'predicted': {'rows': 'groups', 'cells': ['all', 'rated', 'top', 'best', 'popular', 'low_rank'], 'needs_solver': true, 'bounded': false, 'adds_cells': true, 'by_method': false},
    'microaggregated': {'rows': 'groups', 'cells': ['all', 'rated', 'top'], 'needs_solver': false, 'bounded': false, 'adds_cells': false, 'by_method': false},
    'padded': {'rows': 'groups', 'cells': ['all', 'rated', 'top', 'best', 'popular'], 'needs_solver': true, 'bounded': false, 'adds_cells': true, 'by_method': false},
    'pure': {'rows': 'groups', 'cells': ['all', 'rated', 'top'], 'needs_solver': false, 'bounded': true, 'adds_cells': true, 'by_method': false},
    'interval': {'rows': 'users', 'cells': ['all', 'rated', 'top'], 'needs_solver': false, 'bounded': true, 'adds_cells': false, 'by_method': false},
    'noise': {'rows': 'users', 'cells': ['all', 'rated', 'top'], 'needs_solver': false, 'bounded': false, 'adds_cells': false, 'by_method': true},
    'none': {'rows': 'nobody', 'cells': ['all', 'rated', 'top', 'low_rank'], 'needs_solver': false, 'bounded': true, 'adds_cells': false, 'by_method': false},
  } %}
  {{ return(known[name] if name is string and name in known else known['none']) }}
{% endmacro %}

{#- What is wrong with the values of single settings, in sentences. -#}
{% macro wrong_settings() %}
  {% set problems = [] %}
  {% set value = kgather.setting('scale') %}
  {% if value is not none and not (((value is sequence and value is not string and value is not mapping and value | length >= 2 and value | length <= 3 and kgather.all_are(value, 'number')) or value is none) and (value is none or (value[0] < value[1] and (value | length == 2 or (value[2] > 0 and value[2] <= value[1] - value[0] + 1e-6))))) %}
    {% do problems.append('scale is [min, max] or [min, max, step] with min less than max and a step that is more than 0 and fits between them, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('not_rated') %}
  {% if value is not none and not ((value is number and value is not boolean and value - value == 0) or value is none) %}
    {% do problems.append('not_rated is a number, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('repeats') %}
  {% if value is not none and not ((value is string and value in ['latest', 'first', 'mean', 'max', 'sum', 'count']) or value is none) %}
    {% do problems.append('repeats is one of latest, first, mean, max, sum, count, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('rating_cap') %}
  {% if value is not none and not ((value is number and value is not boolean and value - value == 0 and value > 0) or value is none) %}
    {% do problems.append('rating_cap is a number above 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('rating_log') %}
  {% if value is not none and not value is boolean %}
    {% do problems.append('rating_log is true or false, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('min_ratings') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 1) %}
    {% do problems.append('min_ratings is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('max_rejected_share') %}
  {% if value is not none and not (value is number and value is not boolean and value - value == 0 and value >= 0 and value <= 1) %}
    {% do problems.append('max_rejected_share is a number from 0 to 1, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('items') %}
  {% if value is not none and not (value is string or value is none) %}
    {% do problems.append('items is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('items_confirmed') %}
  {% if value is not none and not value is boolean %}
    {% do problems.append('items_confirmed is true or false, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('user_attributes') %}
  {% if value is not none and not (value is string or value is none) %}
    {% do problems.append('user_attributes is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('personal_columns') %}
  {% if value is not none and not (value is sequence and value is not string and value is not mapping and kgather.all_are(value, 'string')) %}
    {% do problems.append('personal_columns is a list of texts, as [age, gender], not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('personal') %}
  {% if value is not none and not (value is string and value in ['generalize', 'separate', 'as_is']) %}
    {% do problems.append('personal is one of generalize, separate, as_is, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('personal_shared') %}
  {% if value is not none and not (value is sequence and value is not string and value is not mapping and kgather.all_are(value, 'string')) %}
    {% do problems.append('personal_shared is a list of texts, as [age, gender], not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('personal_recoding') %}
  {% if value is not none and not value is mapping %}
    {% do problems.append('personal_recoding is a mapping, as {rounds: 20}, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('level_column') %}
  {% if value is not none and not (value is string or value is none) %}
    {% do problems.append('level_column is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('k') %}
  {% if value is none %}{% do problems.append('k is not set.') %}
  {% elif not (value is integer and value is not boolean and value >= 1) %}
    {% do problems.append('k is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('method') %}
  {% if value is not none and not ((value is string and value in ['bkg', 'bokg', 'bounded_t_means', 'customized', 'epsilon', 'k_likeness', 'k_member', 'mdav', 'mondrian', 'gaussian_noise']) or (value is string and kgather.setting('method_facts') is not none)) %}
    {% do problems.append('method is one of bkg, bokg, bounded_t_means, customized, epsilon, k_likeness, k_member, mdav, mondrian, gaussian_noise, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('method_options') %}
  {% if value is not none and not value is mapping %}
    {% do problems.append('method_options is a mapping, as {rounds: 20}, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('solver') %}
  {% if value is not none and not (value is string and value in ['als', 'funk', 'none']) %}
    {% do problems.append('solver is one of als, funk, none, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('solver_options') %}
  {% if value is not none and not value is mapping %}
    {% do problems.append('solver_options is a mapping, as {rounds: 20}, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('rank') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 1 and value <= 500) %}
    {% do problems.append('rank is a whole number from 1 to 500, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('metric') %}
  {% if value is not none and not (value is string and value in ['prediction', 'preference', 'filled']) %}
    {% do problems.append('metric is one of prediction, preference, filled, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('fill') %}
  {% if value is not none and not (value is string and value in ['median', 'mean', 'prediction']) %}
    {% do problems.append('fill is one of median, mean, prediction, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('bisection_tries') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 1) %}
    {% do problems.append('bisection_tries is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('refine') %}
  {% if value is not none and not ((value is string and value in ['auto']) or value is boolean) %}
    {% do problems.append('refine is auto, true or false, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('block_size') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 0) %}
    {% do problems.append('block_size is a whole number of at least 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('artifacts') %}
  {% if value is not none and not ((value is integer and value is not boolean and value >= 1) or (value is sequence and value is not string and value is not mapping and value | length >= 1 and kgather.all_are(value, 'integer or string'))) %}
    {% do problems.append('artifacts is the number of items to take, as 10, or a list of item ids, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('categorical_artifacts') %}
  {% if value is not none and not (value is sequence and value is not string and value is not mapping and kgather.all_are(value, 'string')) %}
    {% do problems.append('categorical_artifacts is a list of texts, as [age, gender], not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('epsilon') %}
  {% if value is not none and not (value is number and value is not boolean and value - value == 0 and value >= 0) %}
    {% do problems.append('epsilon is a number of at least 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('seed') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 0 and value < 9223372036854775808) %}
    {% do problems.append('seed is a whole number of at least 0 and less than 2^63, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('threads') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 0) %}
    {% do problems.append('threads is a whole number of at least 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('sensitive_items') %}
  {% if value is not none and not (value is sequence and value is not string and value is not mapping and kgather.all_are(value, 'integer or string')) %}
    {% do problems.append('sensitive_items is a list of item ids, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('sensitive_columns') %}
  {% if value is not none and not (value is sequence and value is not string and value is not mapping and kgather.all_are(value, 'string')) %}
    {% do problems.append('sensitive_columns is a list of texts, as [age, gender], not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('sensitive_diversity') %}
  {% if value is not none and not (value is string and value in ['distinct', 'entropy', 'recursive', 'deviation']) %}
    {% do problems.append('sensitive_diversity is one of distinct, entropy, recursive, deviation, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('sensitive_l') %}
  {% if value is not none and not ((value is number and value is not boolean and value - value == 0 and value > 0) or value is none) %}
    {% do problems.append('sensitive_l is a number above 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('sensitive_c') %}
  {% if value is not none and not ((value is number and value is not boolean and value - value == 0 and value > 0) or value is none) %}
    {% do problems.append('sensitive_c is a number above 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('homogenize') %}
  {% if value is not none and not (value is string and value in ['auto', 'predicted', 'microaggregated', 'padded', 'pure', 'interval', 'noise', 'none']) %}
    {% do problems.append('homogenize is one of auto, predicted, microaggregated, padded, pure, interval, noise, none, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('cells') %}
  {% if value is not none and not (value is string and modules.re.fullmatch('^(all|rated|low_rank|(?i:top|best|popular)[ :=]?[1-9][0-9]{0,8})$', value)) %}
    {% do problems.append('cells is all, rated, low_rank, top N, best N or popular N (as top 100), not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('popular_noise') %}
  {% if value is not none and not (value is number and value is not boolean and value - value == 0 and value >= 0) %}
    {% do problems.append('popular_noise is a number of at least 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('min_raters') %}
  {% if value is not none and not ((value is integer and value is not boolean and value >= 1) or value is none) %}
    {% do problems.append('min_raters is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('rare_items') %}
  {% if value is not none and not (value is string and value in ['prior', 'drop']) %}
    {% do problems.append('rare_items is one of prior, drop, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('item_noise') %}
  {% if value is not none and not ((value is number and value is not boolean and value - value == 0 and value >= 0) or value is none) %}
    {% do problems.append('item_noise is a number of at least 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('item_epsilon') %}
  {% if value is not none and not ((value is number and value is not boolean and value - value == 0 and value > 0 and value <= 500) or value is none) %}
    {% do problems.append('item_epsilon is a number above 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('item_delta') %}
  {% if value is not none and not (value is number and value is not boolean and value - value == 0 and value >= 1e-15 and value <= 0.5) %}
    {% do problems.append('item_delta is a number from 1e-15 to 0.5, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('outliers') %}
  {% if value is not none and not (value is number and value is not boolean and value - value == 0 and value > 0 and value <= 1) %}
    {% do problems.append('outliers is a number above 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('single_rater') %}
  {% if value is not none and not (value is string and value in ['pad', 'drop', 'keep']) %}
    {% do problems.append('single_rater is one of pad, drop, keep, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('max_cells') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 1) %}
    {% do problems.append('max_cells is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('diversity_b') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 1 and value <= 3) %}
    {% do problems.append('diversity_b is a whole number from 1 to 3, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('diversity_l') %}
  {% if value is not none and not (value is integer and value is not boolean and value >= 1) %}
    {% do problems.append('diversity_l is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('generalize') %}
  {% if value is not none and not (value is string and value in ['auto', 'ndgh', 'dgh', 'none']) %}
    {% do problems.append('generalize is one of auto, ndgh, dgh, none, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('hierarchy') %}
  {% if value is not none and not ((value is string and value in ['halves', 'binary']) or (value is sequence and value is not string and value is not mapping and kgather.all_are(value, 'list'))) %}
    {% do problems.append('hierarchy is halves, binary or levels of [low, high], the finest first, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('noise_sigma') %}
  {% if value is not none and not (value is number and value is not boolean and value - value == 0 and value >= 0) %}
    {% do problems.append('noise_sigma is a number of at least 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('noise_clip') %}
  {% if value is not none and not value is boolean %}
    {% do problems.append('noise_clip is true or false, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('metrics') %}
  {% if value is not none and not (value is string and value in ['auto', 'all', 'none']) %}
    {% do problems.append('metrics is one of auto, all, none, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('i_know_this_is_not_anonymous') %}
  {% if value is not none and not value is boolean %}
    {% do problems.append('i_know_this_is_not_anonymous is true or false, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('history') %}
  {% if value is not none and not value is boolean %}
    {% do problems.append('history is true or false, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('reserve') %}
  {% if value is not none and not ((value is integer and value is not boolean and value >= 0) or value is none) %}
    {% do problems.append('reserve is a whole number of at least 0, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('keep_group_ids') %}
  {% if value is not none and not value is boolean %}
    {% do problems.append('keep_group_ids is true or false, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('ratings') %}
  {% if value is none %}{% do problems.append('ratings is not set.') %}
  {% elif not (value is string and value | length >= 1) %}
    {% do problems.append('ratings is the name of a model, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('user_column') %}
  {% if value is not none and not ((value is string and value | length >= 1) or value is none) %}
    {% do problems.append('user_column is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('item_column') %}
  {% if value is not none and not ((value is string and value | length >= 1) or value is none) %}
    {% do problems.append('item_column is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('rating_column') %}
  {% if value is not none and not ((value is string and value | length >= 1) or value is none) %}
    {% do problems.append('rating_column is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('time_column') %}
  {% if value is not none and not ((value is string and value | length >= 1) or value is none) %}
    {% do problems.append('time_column is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('item_id_type') %}
  {% if value is not none and not (value is string and value in ['bigint', 'varchar']) %}
    {% do problems.append('item_id_type is one of bigint, varchar, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('method_facts') %}
  {% if value is not none and not (value is mapping or value is none) %}
    {% do problems.append('method_facts is a mapping, as {rounds: 20}, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('release_id') %}
  {% if value is not none and not ((value is string and value | length >= 1) or value is none) %}
    {% do problems.append('release_id is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('released_on') %}
  {% if value is not none and not ((value is string and modules.re.fullmatch('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$', value)) or value is none) %}
    {% do problems.append("released_on is a day as 'YYYY-MM-DD', in quotes, not " ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('releases') %}
  {% if value is not none and not value is mapping %}
    {% do problems.append('releases is a mapping, as {rounds: 20}, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {% set value = kgather.setting('within') %}
  {% if value is not none and not ((value is string and value | length >= 1) or value is none) %}
    {% do problems.append('within is a text, not ' ~ tojson(value) ~ '.') %}
  {% endif %}
  {{ return(problems) }}
{% endmacro %}

{#- What settings say against each other, in sentences; only where each makes sense by itself. -#}
{% macro contradicting_settings() %}
  {% set problems = [] %}
  {% set scale = kgather.setting('scale') %}
  {% set repeats = kgather.setting('repeats') %}
  {% set rating_log = kgather.setting('rating_log') %}
  {% set items = kgather.setting('items') %}
  {% set user_attributes = kgather.setting('user_attributes') %}
  {% set personal_columns = kgather.setting('personal_columns') %}
  {% set personal = kgather.setting('personal') %}
  {% set personal_shared = kgather.setting('personal_shared') %}
  {% set personal_recoding = kgather.setting('personal_recoding') %}
  {% set level_column = kgather.setting('level_column') %}
  {% set k = kgather.setting('k') %}
  {% set method = kgather.setting('method') %}
  {% set solver = kgather.setting('solver') %}
  {% set solver_options = kgather.setting('solver_options') %}
  {% set rank = kgather.setting('rank') %}
  {% set metric = kgather.setting('metric') %}
  {% set fill = kgather.setting('fill') %}
  {% set block_size = kgather.setting('block_size') %}
  {% set artifacts = kgather.setting('artifacts') %}
  {% set categorical_artifacts = kgather.setting('categorical_artifacts') %}
  {% set sensitive_items = kgather.setting('sensitive_items') %}
  {% set sensitive_columns = kgather.setting('sensitive_columns') %}
  {% set sensitive_diversity = kgather.setting('sensitive_diversity') %}
  {% set sensitive_l = kgather.setting('sensitive_l') %}
  {% set sensitive_c = kgather.setting('sensitive_c') %}
  {% set homogenize = kgather.setting('homogenize') %}
  {% set cells = kgather.setting('cells') %}
  {% set min_raters = kgather.setting('min_raters') %}
  {% set rare_items = kgather.setting('rare_items') %}
  {% set item_epsilon = kgather.setting('item_epsilon') %}
  {% set single_rater = kgather.setting('single_rater') %}
  {% set diversity_l = kgather.setting('diversity_l') %}
  {% set generalize = kgather.setting('generalize') %}
  {% set i_know_this_is_not_anonymous = kgather.setting('i_know_this_is_not_anonymous') %}
  {% set history = kgather.setting('history') %}
  {% set reserve = kgather.setting('reserve') %}
  {% set ratings = kgather.setting('ratings') %}
  {% set within = kgather.setting('within') %}
  {% set form = kgather.homogenize() %}
  {% set generalization = kgather.generalize() %}
  {% set cells_kind = kgather.cells_kind() %}
  {% set of_method = kgather.method_facts(method) %}
  {% set of_form = kgather.form_facts(form) %}
  {% if cells_kind == 'all' and 'all' not in of_form.cells %}
    {% do problems.append('cells all goes with homogenize predicted, microaggregated, padded, pure, interval or noise.') %}
  {% endif %}
  {% if cells_kind == 'rated' and 'rated' not in of_form.cells %}
    {% do problems.append('cells rated goes with homogenize predicted, microaggregated, padded, pure, interval or noise.') %}
  {% endif %}
  {% if cells_kind == 'top' and 'top' not in of_form.cells %}
    {% do problems.append('cells top N goes with homogenize predicted, microaggregated, padded, pure, interval or noise.') %}
  {% endif %}
  {% if cells_kind == 'best' and 'best' not in of_form.cells %}
    {% do problems.append('cells best N goes with homogenize predicted or padded: it shows what is predicted best.') %}
  {% endif %}
  {% if cells_kind == 'popular' and 'popular' not in of_form.cells %}
    {% do problems.append('cells popular N goes with homogenize predicted or padded: it shows items that nobody may have rated.') %}
  {% endif %}
  {% if cells_kind == 'low_rank' and 'low_rank' not in of_form.cells %}
    {% do problems.append('cells low_rank goes with homogenize predicted: nothing else has a low rank.') %}
  {% endif %}
  {% if (of_method.forms is not none and form not in of_method.forms) or (of_form.by_method and of_method.forms is none) %}
    {% do problems.append('method ' ~ method ~ ' and homogenize ' ~ form ~ ' do not go together: gaussian_noise and noise go together only.') %}
  {% endif %}
  {% if not of_method.anonymous and not i_know_this_is_not_anonymous %}
    {% do problems.append('method ' ~ method ~ ' gives no k-anonymity: every user stands alone. Where that is meant, set i_know_this_is_not_anonymous to true (on the command line --i-know-this-is-not-anonymous).') %}
  {% endif %}
  {% if form == 'none' and generalization == 'none' %}
    {% do problems.append('homogenize none and generalize none leave nothing to release.') %}
  {% endif %}
  {% if not of_method.anonymous and generalization != 'none' %}
    {% do problems.append('method ' ~ method ~ ' has no groups to generalize: set generalize to none.') %}
  {% endif %}
  {% if of_method.levels and not (level_column and user_attributes) %}
    {% do problems.append('method ' ~ method ~ ' needs the users\' levels: set user_attributes and level_column.') %}
  {% endif %}
  {% if level_column and not of_method.levels %}
    {% do problems.append('level_column goes with method bokg or customized: the others give every user k.') %}
  {% endif %}
  {% if (personal_columns or sensitive_columns) and not user_attributes %}
    {% do problems.append('personal_columns and sensitive_columns are columns of the users\' attributes: set user_attributes.') %}
  {% endif %}
  {% if personal_columns and generalization == 'none' and personal != 'separate' %}
    {% do problems.append('personal_columns are shown beside generalized artifacts: set generalize to ndgh or dgh, or personal to separate.') %}
  {% endif %}
  {% if personal_columns and personal == 'as_is' and not i_know_this_is_not_anonymous %}
    {% do problems.append('personal as_is shows attributes as they are, and rare ones single people out: set personal to generalize or separate. Where that is meant, set i_know_this_is_not_anonymous to true (on the command line --i-know-this-is-not-anonymous).') %}
  {% endif %}
  {% if personal_shared and personal != 'separate' %}
    {% do problems.append('personal_shared names what both tables of personal separate show: set personal to separate.') %}
  {% endif %}
  {% if personal_shared | reject('in', personal_columns) | list %}
    {% do problems.append('personal_shared names columns that are not among personal_columns: add them there.') %}
  {% endif %}
  {% if personal_shared and generalization == 'none' %}
    {% do problems.append('personal_shared are shown beside generalized artifacts: set generalize to ndgh or dgh.') %}
  {% endif %}
  {% if categorical_artifacts and not of_method.categories %}
    {% do problems.append('categorical_artifacts go with method k_likeness, k_member or mondrian, which gather on the artifact table. Method ' ~ method ~ ' looks at ratings alone.') %}
  {% endif %}
  {% if categorical_artifacts | reject('in', personal_shared if personal == 'separate' else personal_columns) | list %}
    {% do problems.append('categorical_artifacts are shown beside the other artifacts: name them in personal_columns, and with personal separate in personal_shared, too.') %}
  {% endif %}
  {% if personal_recoding and not personal_columns %}
    {% do problems.append('personal_recoding says how personal_columns are generalized: set personal_columns.') %}
  {% endif %}
  {% if solver == 'none' and (of_form.needs_solver or (form == 'pure' and single_rater == 'pad')) %}
    {% do problems.append('solver none learns nothing to homogenize with: set homogenize to microaggregated, or to pure with single_rater drop or keep.') %}
  {% endif %}
  {% if rare_items == 'drop' and not of_form.needs_solver %}
    {% do problems.append('rare_items drop goes with homogenize predicted or padded, which show predictions of items.') %}
  {% endif %}
  {% if item_epsilon is not none and not items %}
    {% do problems.append('item_epsilon needs items, the list of all items: that an item is there would say that somebody rated it.') %}
  {% endif %}
  {% if item_epsilon is not none and scale is none %}
    {% do problems.append('item_epsilon needs scale: an inferred one ends at the ratings of one or two people.') %}
  {% endif %}
  {% if item_epsilon is not none and form != 'predicted' %}
    {% do problems.append('item_epsilon goes with homogenize predicted: the others show ratings as they are.') %}
  {% endif %}
  {% if item_epsilon is not none and cells_kind not in ['all', 'best', 'low_rank'] %}
    {% do problems.append('item_epsilon goes with cells all, best N or low_rank: the others choose items by who rated them.') %}
  {% endif %}
  {% if item_epsilon is not none and (solver != 'als' or solver_options or min_raters is not none or rare_items == 'drop') %}
    {% do problems.append('item_epsilon has a way to learn of its own: leave solver, solver_options, min_raters and rare_items out.') %}
  {% endif %}
  {% if solver == 'none' and fill == 'prediction' %}
    {% do problems.append('fill prediction needs a solver: als or funk.') %}
  {% endif %}
  {% if solver == 'none' and metric != 'filled' and of_method.gathers_on == 'vectors' and of_method.anonymous %}
    {% do problems.append('solver none leaves users nothing to be compared in but metric filled.') %}
  {% endif %}
  {% if block_size and not of_method.blocks %}
    {% do problems.append('block_size goes with method bkg, bounded_t_means or mdav.') %}
  {% endif %}
  {% if sensitive_l is not none and not (sensitive_items or sensitive_columns) %}
    {% do problems.append('sensitive_l needs sensitive_items or sensitive_columns.') %}
  {% endif %}
  {% if sensitive_l is not none and (sensitive_diversity == 'recursive') != (sensitive_c is not none) %}
    {% do problems.append('sensitive_c goes with sensitive_diversity recursive, and only with it.') %}
  {% endif %}
  {% if sensitive_l is not none and (of_method.levels or not of_method.anonymous) %}
    {% do problems.append('sensitive_l cannot be kept by method ' ~ method ~ ', which lets users stand alone.') %}
  {% endif %}
  {% if diversity_l > 1 and (not of_form.adds_cells or cells_kind == 'low_rank') %}
    {% do problems.append('diversity_l goes with homogenize predicted, padded or pure and cells all, rated or top N.') %}
  {% endif %}
  {% if scale is not none and (rating_log or repeats in ('sum', 'count')) %}
    {% do problems.append('scale is that of the ratings as they are read: leave it out with rating_log and with repeats sum or count.') %}
  {% endif %}
  {% if (history or reserve) and (of_method.levels or not of_method.anonymous or 'unchanged' in of_method.tells or of_method.gathers_on == 'artifacts') %}
    {% do problems.append('history and reserve go with method bkg, bounded_t_means or mdav: the groups of the others hang on more than who is in them.') %}
  {% endif %}
  {% if (history or reserve) and (sensitive_l is not none or generalization != 'none' or personal_columns) %}
    {% do problems.append('history and reserve do not go with sensitive_l, generalize or personal_columns: groups may fail them as they change.') %}
  {% endif %}
  {% if within is defined and within is not none and (of_method.levels or not of_method.anonymous or 'unchanged' in of_method.tells or of_method.gathers_on == 'artifacts' or 'left_out' in of_method.tells) %}
    {% do problems.append('within goes with method bkg, bounded_t_means or mdav: it puts whole groups together by their mean vectors.') %}
  {% endif %}
  {% if within is defined and within is not none and (sensitive_l is not none or metric == 'filled' or solver == 'none') %}
    {% do problems.append('within does not go with sensitive_l, metric filled or solver none.') %}
  {% endif %}
  {% if diversity_l > 1 and solver == 'none' %}
    {% do problems.append('diversity_l needs a solver: added cells hold predictions.') %}
  {% endif %}
  {% if not problems %}
    {% set options = kgather.setting('method_options') %}
    {% if method == 'bkg' %}
      {% for name in options if name not in [] %}
        {% do problems.append('method bkg has no option ' ~ "'" ~ name ~ "'" ~ '; it has none.') %}
      {% endfor %}
    {% endif %}
    {% if method == 'bokg' %}
      {% for name in options if name not in [] %}
        {% do problems.append('method bokg has no option ' ~ "'" ~ name ~ "'" ~ '; it has none.') %}
      {% endfor %}
    {% endif %}
    {% if method == 'bounded_t_means' %}
      {% for name in options if name not in ['sample', 'bins', 'rounds', 'virtual_centres'] %}
        {% do problems.append('method bounded_t_means has no option ' ~ "'" ~ name ~ "'" ~ '; its options are: sample, bins, rounds, virtual_centres.') %}
      {% endfor %}
      {% set named_well = not problems %}
      {% set value = options['sample'] %}
      {% if named_well and 'sample' in options and not ((value is integer and value is not boolean and value >= 1) or value is none) %}
        {% do problems.append('method bounded_t_means: sample is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
      {% endif %}
      {% set value = options['bins'] %}
      {% if named_well and 'bins' in options and not ((value is integer and value is not boolean and value >= 1) or value is none) %}
        {% do problems.append('method bounded_t_means: bins is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
      {% endif %}
      {% set value = options['rounds'] %}
      {% if named_well and 'rounds' in options and not (value is integer and value is not boolean and value >= 1) %}
        {% do problems.append('method bounded_t_means: rounds is a whole number of at least 1, not ' ~ tojson(value) ~ '.') %}
      {% endif %}
      {% set value = options['virtual_centres'] %}
      {% if named_well and 'virtual_centres' in options and not value is boolean %}
        {% do problems.append('method bounded_t_means: virtual_centres is true or false, not ' ~ tojson(value) ~ '.') %}
      {% endif %}
    {% endif %}
    {% if method == 'customized' %}
      {% for name in options if name not in [] %}
        {% do problems.append('method customized has no option ' ~ "'" ~ name ~ "'" ~ '; it has none.') %}
      {% endfor %}
    {% endif %}
    {% if method == 'epsilon' %}
      {% for name in options if name not in ['by'] %}
        {% do problems.append('method epsilon has no option ' ~ "'" ~ name ~ "'" ~ '; its options are: by.') %}
      {% endfor %}
      {% set named_well = not problems %}
      {% set value = options['by'] %}
      {% if named_well and 'by' in options and not (value is string and value in ['windows', 'deletion']) %}
        {% do problems.append('method epsilon: by is one of windows, deletion, not ' ~ tojson(value) ~ '.') %}
      {% endif %}
    {% endif %}
    {% if method == 'k_likeness' %}
      {% for name in options if name not in [] %}
        {% do problems.append('method k_likeness has no option ' ~ "'" ~ name ~ "'" ~ '; it has none.') %}
      {% endfor %}
    {% endif %}
    {% if method == 'k_member' %}
      {% for name in options if name not in [] %}
        {% do problems.append('method k_member has no option ' ~ "'" ~ name ~ "'" ~ '; it has none.') %}
      {% endfor %}
    {% endif %}
    {% if method == 'mdav' %}
      {% for name in options if name not in ['leftovers'] %}
        {% do problems.append('method mdav has no option ' ~ "'" ~ name ~ "'" ~ '; its options are: leftovers.') %}
      {% endfor %}
      {% set named_well = not problems %}
      {% set value = options['leftovers'] %}
      {% if named_well and 'leftovers' in options and not (value is string and value in ['nearest', 'own']) %}
        {% do problems.append('method mdav: leftovers is one of nearest, own, not ' ~ tojson(value) ~ '.') %}
      {% endif %}
    {% endif %}
    {% if method == 'mondrian' %}
      {% for name in options if name not in [] %}
        {% do problems.append('method mondrian has no option ' ~ "'" ~ name ~ "'" ~ '; it has none.') %}
      {% endfor %}
    {% endif %}
    {% if method == 'gaussian_noise' %}
      {% for name in options if name not in [] %}
        {% do problems.append('method gaussian_noise has no option ' ~ "'" ~ name ~ "'" ~ '; it has none.') %}
      {% endfor %}
    {% endif %}
  {% endif %}
  {{ return(problems) }}
{% endmacro %}
