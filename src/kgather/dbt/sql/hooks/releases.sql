{#-
Several releases in one project: `vars: kgather: releases:` has an entry for each, and `kgather dbt-release NAME` writes
a package of models for each. The models of the package kgather_NAME have that name instead of kgather; all macros are
here. Which release a node is of, its package says.
-#}

{#- The entries of the releases by name; none where the project has only the package's own release. -#}
{% macro releases() %}
  {% set nested = var('kgather', none) %}
  {% set found = nested.get('releases') if nested is mapping %}
  {{ return(found if found is mapping else {}) }}
{% endmacro %}

{#- The name of the release that the node being read or run is of; none for the package's own. -#}
{% macro release_name() %}
  {% set package = model.package_name | default('') if model is defined and model is mapping else '' %}
  {% set name = package[8:] if package.startswith('kgather_') else none %}
  {{ return(name if name in kgather.releases() else none) }}
{% endmacro %}

{#- The name that a relation or model of kgather's has in this release; one that has it already keeps it. -#}
{% macro name_in_release(name) %}
  {% set release = kgather.release_name() %}
  {% set first = 'kgather_' ~ release ~ '_' %}
  {{ return(name | replace('kgather_', first, 1) if release and first not in name else name) }}
{% endmacro %}

{#- A model of this release, for macros: text in models has the name of the release in it. -#}
{% macro ref_to(name) %}
  {{ return(ref(kgather.name_in_release(name))) }}
{% endmacro %}

{#- What is wrong with the setting releases, in sentences: names, entries, and packages that are not there. -#}
{% macro wrong_releases() %}
  {% set problems = [] %}
  {% set said = kgather.releases() %}
  {% for name, entry in said.items() %}
    {% if not modules.re.fullmatch('[a-z][a-z0-9]*(_[a-z0-9]+)*', name | string) %}
      {% do problems.append("releases: " ~ name ~ " is no name of a release. Use small letters, digits and single _.") %}
    {% elif entry is not mapping %}
      {% do problems.append("releases: " ~ name ~ " is a mapping of settings, as {k: 10}, not " ~ tojson(entry) ~ ".") %}
    {% elif not context.get('kgather_' ~ name) %}
      {% do problems.append(
        "releases: there is no package kgather_" ~ name ~ ". Run kgather dbt-release " ~ name
        ~ ", and name the folder that it writes in packages.yml."
      ) %}
    {% else %}
      {% set written = context['kgather_' ~ name].written_by() %}
      {% if written != kgather.package_version() %}
        {% do problems.append(
          "releases: kgather " ~ written ~ " wrote the package kgather_" ~ name ~ ", and this is "
          ~ kgather.package_version() ~ ". Run kgather dbt-release " ~ name ~ " again."
        ) %}
      {% endif %}
      {% for setting in entry if setting not in kgather.setting_defaults() or setting == 'releases' %}
        {% do problems.append(
          "releases: " ~ name ~ ": there is no setting " ~ setting ~ ". There are: "
          ~ kgather.setting_defaults().keys() | reject('equalto', 'releases') | join(', ') ~ "."
        ) %}
      {% endfor %}
      {#- What is set for all by its prefix must not silently replace what a release says. -#}
      {% for setting in entry if var('kgather_' ~ setting, none) is not none %}
        {% do problems.append(
          "releases: " ~ name ~ " says " ~ setting ~ ", and the var kgather_" ~ setting ~ " says it for all. Say it once."
        ) %}
      {% endfor %}
      {% if entry.get('within') is not none and (entry['within'] not in said or entry['within'] == name) %}
        {% do problems.append("releases: " ~ name ~ ": within is the name of another release, not " ~ tojson(entry['within']) ~ ".") %}
      {% elif entry.get('within') is not none and said[entry['within']].get('within') is not none %}
        {% do problems.append(
          "releases: " ~ name ~ ": within is a release that is within no other, not " ~ tojson(entry['within']) ~ "."
        ) %}
      {% elif entry.get('within') is not none and kgather.keeps_history(name) and not kgather.keeps_history(entry['within']) %}
        {% do problems.append(
          "releases: " ~ name ~ " has history and " ~ entry['within'] ~ ", which it is within, has none: its groups would "
          ~ "not stay. Set history for both."
        ) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {{ return(problems) }}
{% endmacro %}

{#- The hook of a release's package: its settings are checked as those of the package's own release are. -#}
{% macro on_run_start_of_release() %}
  {% if execute and kgather.builds_models_of(model.package_name) %}{{ kgather.check_vars() }}{% endif %}
{% endmacro %}

{#- The release that a release's groups are made of: itself, or the one it is within. Those with the same one are safe together. -#}
{% macro origin_of(name) %}
  {{ return(kgather.releases()[name].get('within') or name) }}
{% endmacro %}

{#- Whether a release of several keeps its map for later ones. -#}
{% macro keeps_history(name) %}
  {% set said = [var('kgather_history', none)] %}
  {% for place in (kgather.releases().get(name), var('kgather', none)) if place is mapping %}
    {% do said.append(place.get('history')) %}
  {% endfor %}
  {{ return((said | reject('none') | first | default(false)) is true) }}
{% endmacro %}

{#- What a release's entry, or what is said for all, says of a setting. -#}
{% macro setting_of(release, name) %}
  {% set said = kgather.releases()[release].get(name) %}
  {{ return(said if said is not none else kgather.setting(name)) }}
{% endmacro %}
