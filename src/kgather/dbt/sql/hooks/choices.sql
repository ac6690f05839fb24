{#- What `auto` stands for, and which parts of the release the vars ask for. -#}

{#- Methods that gather on the artifact table. -#}
{% macro gathers_on_artifacts() %}
  {{ return(kgather.method_facts(kgather.setting('method')).gathers_on == 'artifacts') }}
{% endmacro %}

{#- Methods that take a level for each user: a group may be smaller than k where its members want it. -#}
{% macro has_levels() %}
  {{ return(kgather.method_facts(kgather.setting('method')).levels) }}
{% endmacro %}

{#- Whether somebody may be alone in a group: where users choose their level, or where nobody is gathered. -#}
{% macro users_may_stand_alone() %}
  {% set facts = kgather.method_facts(kgather.setting('method')) %}
  {{ return(facts.levels or not facts.anonymous) }}
{% endmacro %}

{#- Whether users may be in no group: a method that can leave them out was told to. -#}
{% macro may_leave_users_out() %}
  {% set facts = kgather.method_facts(kgather.setting('method')) %}
  {{ return('left_out' in facts.tells and kgather.setting('method_options').get('by') == 'deletion') }}
{% endmacro %}

{#- The raters from which on an item has something of its own: min_raters, or k where that is not said. -#}
{% macro least_raters() %}
  {{ return(kgather.setting('min_raters') if kgather.setting('min_raters') is not none else kgather.setting('k')) }}
{% endmacro %}

{#- The size of group that everybody is promised: k, or 1 where users choose for themselves or stand alone. -#}
{% macro least_size() %}
  {{ return(1 if kgather.users_may_stand_alone() else kgather.setting('k')) }}
{% endmacro %}

{#- How the groups' ratings are made: the form of the release. -#}
{% macro homogenize() %}
  {% set asked = kgather.setting('homogenize') %}
  {{ return(kgather.method_facts(kgather.setting('method')).form if asked == 'auto' else asked) }}
{% endmacro %}

{#- How the artifact table is generalized: ndgh, dgh or none. -#}
{% macro generalize() %}
  {% set asked = kgather.setting('generalize') %}
  {{ return(kgather.method_facts(kgather.setting('method')).generalization if asked == 'auto' else asked) }}
{% endmacro %}

{#- Whether the release has one value for each group and item, as vectors or as cells. -#}
{% macro has_cells() %}
  {{ return(kgather.form_facts(kgather.homogenize()).rows == 'groups') }}
{% endmacro %}

{#- Whether the release has one value for each user and item. -#}
{% macro has_rows_of_users() %}
  {{ return(kgather.form_facts(kgather.homogenize()).rows == 'users') }}
{% endmacro %}

{#- What cells says, without its number: all, rated, low_rank, top, best or popular. -#}
{% macro cells_kind() %}
  {% set found = modules.re.match('[a-z_]+', (kgather.setting('cells') | string).lower()) %}
  {{ return(found.group(0) if found else '') }}
{% endmacro %}

{#- N where cells is `top N`, `best N` or `popular N`, by that word; else nothing. -#}
{% macro number_after(word) %}
  {%- set found = modules.re.fullmatch(word ~ '[ :=]?([1-9][0-9]*)', (kgather.setting('cells') | string).lower()) -%}
  {{- found.group(1) if found -}}
{% endmacro %}
{% macro top_items() %}{{ kgather.number_after('top') }}{% endmacro %}
{% macro best_items() %}{{ kgather.number_after('best') }}{% endmacro %}
{% macro popular_items() %}{{ kgather.number_after('popular') }}{% endmacro %}

{% macro is_low_rank() %}
  {{ return(kgather.has_cells() and kgather.setting('cells') == 'low_rank') }}
{% endmacro %}

{#- Whether cells are added until every set of items is shown by enough groups. -#}
{% macro adds_cells() %}
  {{ return(kgather.has_cells() and not kgather.is_low_rank() and kgather.setting('diversity_l') | string not in ['0', '1']) }}
{% endmacro %}

{#- Whether the diversity of sensitive ratings or columns is asked for. -#}
{% macro has_sensitive() %}
  {{ return(kgather.setting('sensitive_l') is not none) }}
{% endmacro %}

{#-
Which metrics kgather__metrics holds: none, classes (what the groups alone tell) or all; what reads every rating is left
out of large inputs where the var metrics is auto. checked_input: its relation, which must be built before.
-#}
{% macro metrics_wanted(checked_input) %}
  {%- set most = 20000000 -%}
  {#- What is compiled only has not been built. -#}
  {%- if kgather.setting('metrics') == 'auto' and execute and load_relation(checked_input) is not none -%}
    {%- set staged = run_query("select staged_rows from " ~ checked_input).rows -%}
    {#- With --empty there is nothing to measure. -#}
    {%- if staged | length == 0 -%}{%- do return("none") -%}{%- endif -%}
    {%- do return("all" if staged[0][0] <= most else "classes") -%}
  {%- endif -%}
  {%- do return("none" if kgather.setting('metrics') == 'none' else "all") -%}
{% endmacro %}
