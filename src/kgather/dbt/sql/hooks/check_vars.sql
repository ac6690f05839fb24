{#-
Refuses settings that make no sense, before any work: which they are and what they may be. What is asked is generated
from the schema that the command line has, too (settings.sql); a Python model asks it once more before users are gathered.
-#}
{% macro check_vars() %}
  {% set problems = kgather.unknown_vars() %}
  {% if not problems %}{% do problems.extend(kgather.wrong_releases()) %}{% endif %}
  {% if not problems %}
    {% do problems.extend(kgather.wrong_settings()) %}
  {% endif %}
  {% if not problems %}
    {% do problems.extend(kgather.contradicting_settings()) %}
  {% endif %}
  {% do kgather.refuse_settings(problems) %}
  {% do kgather.warn_of_old_names() %}
{% endmacro %}

{#- Refuses releases that make no sense; what each says is checked where its models are built. -#}
{% macro check_releases() %}
  {% set problems = kgather.unknown_vars() %}
  {% if not problems %}{% do problems.extend(kgather.wrong_releases()) %}{% endif %}
  {% do kgather.refuse_settings(problems) %}
{% endmacro %}

{% macro refuse_settings(problems) %}
  {% set release = kgather.release_name() %}
  {% if problems %}
    {% do exceptions.raise_compiler_error(
      "kgather cannot start" ~ (" the release " ~ release if release else "") ~ ":\n  - " ~ problems | join("\n  - ")
      ~ "\nSet it in dbt_project.yml, under vars: kgather:, or with --vars '{kgather_k: 10}'."
    ) %}
  {% endif %}
{% endmacro %}

{#- Vars that look like kgather's and are not, and a mapping that would replace what the project says. -#}
{% macro unknown_vars() %}
  {% set problems = [] %}
  {% set known = kgather.setting_defaults().keys() | list + kgather.settings_outside() %}
  {% set vars = [] %}
  {% for name in known %}{% do vars.append('kgather_' ~ name) %}{% endfor %}
  {% set given = kgather.given_vars() %}
  {% if 'kgather' in given %}
    {% do problems.append(
      "--vars '{kgather: ...}' would replace all that the project says under vars: kgather:. Use the prefix, as in "
      ~ "--vars '{kgather_k: 10}'."
    ) %}
  {% endif %}
  {% for name in given if name.lower().startswith('kgather_') and name not in vars %}
    {% do problems.append("there is no var " ~ name ~ ". There are: kgather_" ~ known | join(', kgather_') ~ ".") %}
  {% endfor %}
  {% if var('kgather_releases', none) is not none %}
    {% do problems.append("releases goes under vars: kgather: in dbt_project.yml, as dbt reads it before there are models.") %}
  {% endif %}
  {% set nested = var('kgather', none) %}
  {% if nested is not none and nested is not mapping %}
    {% do problems.append("vars: kgather: is a mapping of settings, as {k: 10}, not " ~ tojson(nested) ~ ".") %}
  {% else %}
    {% for name in nested or {} if name not in known and not (name | string | lower).startswith('kgather_') %}
      {% do problems.append(
        "there is no setting " ~ name ~ " under vars: kgather:. There are: " ~ known | join(', ') ~ "."
      ) %}
    {% endfor %}
  {% endif %}
  {% for name in (nested if nested is mapping else {}) if (name | string | lower).startswith('kgather_') and name not in vars %}
    {% do problems.append("there is no var " ~ name ~ ". There are: kgather_" ~ known | join(', kgather_') ~ ".") %}
  {% endfor %}
  {{ return(problems) }}
{% endmacro %}

{#- The vars of the command line. -#}
{% macro given_vars() %}
  {% set given = invocation_args_dict.get('vars') or {} %}
  {{ return(fromyaml(given) if given is string else given) }}
{% endmacro %}

{% macro warn_of_old_names() %}
  {% set given = kgather.given_vars() %}
  {% set nested = var('kgather', none) or {} %}
  {% for name in kgather.old_setting_names() %}
    {% if var(name, none) is not none and name not in nested and var('kgather_' ~ name, none) is none %}
      {% do exceptions.warn("kgather: the var " ~ name ~ " is deprecated outside vars: kgather:. Use kgather_" ~ name ~ ".") %}
    {% endif %}
  {% endfor %}
  {% for name in given if name in kgather.setting_defaults() and name not in kgather.old_setting_names() %}
    {% do exceptions.warn("kgather does not read the var " ~ name ~ " of --vars. Use kgather_" ~ name ~ " if it is meant for kgather.") %}
  {% endfor %}
{% endmacro %}
