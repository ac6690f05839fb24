{#- Counts pairs of group and sensitive attribute that do not have the diversity the vars ask for. -#}

{% macro diversity_name() -%}
  {%- set l = kgather.setting('sensitive_l') -%}
  {{- {
    'distinct': 'distinct ' ~ l ~ '-diversity',
    'entropy': 'entropy ' ~ l ~ '-diversity',
    'recursive': 'recursive (' ~ kgather.setting('sensitive_c') ~ ', ' ~ l ~ ')-diversity',
    'deviation': 'standard deviation of at least ' ~ l,
  }[kgather.setting('sensitive_diversity')] -}}
{%- endmacro %}

{#-
values(user_code, attribute, value), gathered(user_code, group_id): relations. Nulls are not in `values`; a group in
which nobody has a value of an attribute shows nothing that could be inferred.
-#}
{% macro count_undiverse(values, gathered) -%}
  with frequencies as (
    select gathered.group_id, sensitive.attribute, sensitive.value, count(*) as times
    from {{ values }} as sensitive
    join {{ gathered }} as gathered using (user_code)
    group by gathered.group_id, sensitive.attribute, sensitive.value
  ),
  ranked as (
    select
      *,
      sum(times) over (partition by group_id, attribute) as total,
      row_number() over (partition by group_id, attribute order by times desc) as rank
    from frequencies
  ),
  classes as (
    select
      group_id,
      attribute,
      count(*) as distinct_values,
      -sum(times / total * ln(times / total)) as entropy,
      max(times) as most_frequent,
      coalesce(sum(times) filter (where rank >= {{ kgather.setting("sensitive_l") }}), 0) as tail,
      sqrt(greatest(sum(times * value * value) / sum(times) - power(sum(times * value) / sum(times), 2), 0)) as deviation
    from ranked
    group by group_id, attribute
  )
  select count(*)
  from classes
  where not
    {% if kgather.setting("sensitive_diversity") == "distinct" -%}
    distinct_values >= {{ kgather.setting("sensitive_l") }}
    {%- elif kgather.setting("sensitive_diversity") == "entropy" -%}
    entropy >= ln({{ kgather.setting("sensitive_l") }}) - 1e-9
    {%- elif kgather.setting("sensitive_diversity") == "recursive" -%}
    most_frequent < {{ kgather.setting("sensitive_c") }} * tail
    {%- else -%}
    deviation >= {{ kgather.setting("sensitive_l") }} - 1e-9
    {%- endif %}
{%- endmacro %}
