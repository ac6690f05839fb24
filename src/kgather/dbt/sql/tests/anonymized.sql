{#-
Asserts that a table keeps what kgather.anonymize was asked for: k-anonymity of its quasi-identifiers, and the l, t or
alpha of each sensitive column. The arguments are those of kgather.anonymize; settings that promise nothing are passed
over.

  data_tests:
    - kgather.anonymized:
        arguments: {k: 10, quasi_identifiers: [age, zip], sensitive: [illness], l: 3}

Failures are, for each promise that is not kept, what it is of and what was measured: never members, never values.
-#}
{% test anonymized(model, k, quasi_identifiers, sensitive=none, l=none, diversity='entropy', c=none, t=none, alpha=none, measure='people') %}
  {{- kgather.count_failures('anonymized', measure) -}}
  {%- set columns = kgather.names_as_literals("anonymized", "quasi_identifiers", quasi_identifiers.keys() | list if quasi_identifiers is mapping else quasi_identifiers) -%}
  {{ kgather.check_number("anonymized", "k", k, 1) }}
  {%- set of_each = sensitive if sensitive is mapping else {} -%}
  with kg_tested as not materialized (
    select * from {{ model }}
  ),
  kg_failing as materialized (
    {#- In a class a quasi-identifier has one value: of it only the size of the class is asked. #}
    select 'k' as promise, cast(null as varchar) as sensitive_column, class, class_size, cast(class_size as double) as measured
    from kg_class_alpha('kg_tested', {{ columns }}, {{ columns }}[:1])
    where class_size < {{ k }}
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
    from kg_class_t('kg_tested', {{ columns }}, {{ column }}, {{ said.get('ordered', 'null') }})
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
