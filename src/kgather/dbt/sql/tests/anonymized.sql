{#-
Asserts that a table keeps what kgather.anonymize was asked for: k-anonymity of its quasi-identifiers, the l, t or alpha
of each sensitive column, a pseudonym of its own for each row, and no column of identifiers or unit. The arguments are
those of kgather.anonymize; settings that say how it is made are passed over. What is written does not say whose rows are:
rows are counted, and k_map and presence, which need the population, are refused.

  data_tests:
    - kgather.anonymized:
        arguments: {k: 10, quasi_identifiers: [age, zip], sensitive: [illness], l: 3}

Failures are, for each promise that is not kept, what it is of and what was measured: never members, never values.
-#}
{% test anonymized(
  model, k, quasi_identifiers, sensitive=none, l=none, diversity='entropy', c=none, t=none, ordered=none, alpha=none,
  others=none, identifiers=none, unit=none, pseudonym=none, rows_per_person=none, aggregate=none, within=none, beside=none,
  population=none, k_map=none, presence=none, method=none, relaxed=none, rounds=none, suppress=none, seed=none,
  threads=none, sampling_fraction=none, measure='people'
) %}
  {{- kgather.count_failures('anonymized', measure) -}}
  {%- set columns = kgather.names_as_literals("anonymized", "quasi_identifiers", quasi_identifiers.keys() | list if quasi_identifiers is mapping else quasi_identifiers) -%}
  {{ kgather.check_number("anonymized", "k", k, 1) }}
  {%- if k_map is not none or presence is not none -%}
    {{ exceptions.raise_compiler_error(
      "anonymized cannot measure k_map and presence, as the table does not hold the population. Leave them out, and "
      ~ "population with them: kgather anonymize and kgather.anonymize in Python measure them when the table is made."
    ) }}
  {%- endif -%}
  {%- set left_out = (identifiers or []) + ([unit] if unit is not none else []) -%}
  {%- set of_each = sensitive if sensitive is mapping else {} -%}
  with kg_tested as not materialized (
    select * from {{ model }}
  ),
  kg_failing as materialized (
    {#- In a class a quasi-identifier has one value: of it only the size of the class is asked. #}
    select 'k' as promise, cast(null as varchar) as sensitive_column, class, class_size, cast(class_size as double) as measured
    from kg_class_alpha('kg_tested', {{ columns }}, {{ columns }}[:1])
    where class_size < {{ k }}
    {%- if left_out %}
    union all
    select 'left out', column_name, class, class_size, class_size
    from kg_class_alpha('kg_tested', {{ columns }}, {{ columns }}[:1])
    cross join (select column_name from (describe from kg_tested))
    where lower(column_name) in (select lower(unnest({{ kgather.names_as_literals("anonymized", "identifiers", left_out) }})))
    {%- endif %}
    {%- if pseudonym is not none %}
    union all
    select 'pseudonym', {{ kgather.names_as_literals("anonymized", "pseudonym", [pseudonym]) }}[1], -1, linked, linked
    from (
      select count(*) - count(distinct {{ kgather.quoted_name(pseudonym) }}) as linked
      from kg_tested
    )
    where linked > 0
    {%- endif %}
    {%- for name in sensitive or [] %}
    {%- set said = of_each.get(name) or {} -%}
    {%- set column = kgather.names_as_literals("anonymized", "sensitive", [name]) -%}
    {%- set wanted_l = said.get('l', l) -%}
    {%- set kind = said.get('diversity', diversity) -%}
    {%- set wanted_c = said.get('c', c) -%}
    {%- set wanted_t = said.get('t', t) -%}
    {%- set wanted_alpha = said.get('alpha', alpha) -%}
    {%- if wanted_l is not none %}
    union all
    select 'l', sensitive_column, class, class_size, l
    from kg_class_l('kg_tested', {{ columns }}, {{ column }}, '{{ kind }}', {{ wanted_c if kind == 'recursive' else 'null' }})
    where l < {{ wanted_l }}
    {%- endif %}
    {%- if wanted_t is not none and said.get('hierarchy') is not none %}
    {%- if said['hierarchy'] is string or said['hierarchy'] is mapping %}
      {{ exceptions.raise_compiler_error("anonymized needs the hierarchy of " ~ name ~ " as a list of lists of labels.") }}
    {%- endif %}
    union all
    select 't', {{ column }}[1], class, class_size, t
    from kg_class_hierarchical_t(
      'kg_tested', {{ columns }}, {{ column }}[1],
      from_json('{{ tojson(said['hierarchy']) | replace("'", "''") }}', '[["VARCHAR"]]')
    )
    where t > {{ wanted_t }}
    {%- elif wanted_t is not none %}
    union all
    select 't', sensitive_column, class, class_size, t
    from kg_class_t('kg_tested', {{ columns }}, {{ column }}, {{ said.get('ordered', 'null' if ordered is none else ordered) }})
    where t > {{ wanted_t }}
    {%- endif %}
    {%- if wanted_alpha is not none %}
    union all
    select 'alpha', sensitive_column, class, class_size, alpha
    from kg_class_alpha('kg_tested', {{ columns }}, {{ column }})
    where alpha > {{ wanted_alpha }}
    {%- endif %}
    {%- endfor %}
  )
  select
    promise,
    sensitive_column,
    case when promise in ('k', 'l') then min(measured) else max(measured) end as measured,
    {{ kgather.at_risk("kg_failing") }}
  from kg_failing
  group by promise, sensitive_column
{% endtest %}
