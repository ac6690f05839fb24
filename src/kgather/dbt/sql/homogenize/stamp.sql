{#-
The last columns of every mart: which release it is of, and of which day. They are the same in all rows, and made of
settings, the clock and the number of the release in its chain, so that they tell of nobody. Nothing is drawn at random:
the same release has the same ones wherever it is built on that day.
-#}
{% macro stamp() -%}
  cast({{ kgather.quoted_text(kgather.release_id()) }} as varchar) as release_id,
  cast('{{ kgather.released_on() }}' as date) as released_on
{%- endmacro %}

{#- Names of the columns of the stamp, which no artifact or attribute may have. -#}
{% macro stamp_columns() %}{{ return(['release_id', 'released_on']) }}{% endmacro %}

{% macro released_on() %}
  {{ return(kgather.setting('released_on') or run_started_at.strftime('%Y-%m-%d')) }}
{% endmacro %}

{% macro release_id() %}
  {% set said = kgather.setting('release_id') %}
  {% if said is not none %}{{ return(said) }}{% endif %}
  {% if not kgather.setting('history') %}{{ return(kgather.released_on()) }}{% endif %}
  {#- As text and not as a subquery: a view of the release must not need the working database. -#}
  {% set history = kgather.ref_to('kgather_history') %}  {#- named even while dbt parses, so that it is built before -#}
  {% set kept = load_relation(history) if execute %}
  {% set found = run_query("select max(release_number) from " ~ kept).rows[0][0] if kept %}
  {{ return((found or 0) | int | string) }}
{% endmacro %}
