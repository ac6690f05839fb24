{{ config(enabled=kgather.publishes()) }}
-- What is sensitive of each user, as numbers: (user_code, attribute, value). What a user has not is not there.
{% set deviation = kgather.setting("sensitive_diversity") == "deviation" -%}
{% set parts = [] -%}
{% for item in kgather.setting("sensitive_items") -%}
{% set item_text = item | string | replace("'", "''") -%}
{% set part -%}
select users.user_code, 'item {{ item_text }}' as attribute, ratings.rating as value
from {{ ref("stg_kgather__ratings") }} as ratings
join {{ ref("int_kgather__users") }} as users using (user_id)
where cast(ratings.item_id as varchar) = '{{ item_text }}'
{%- endset %}
{% do parts.append(part) -%}
{% endfor -%}
{% for column in kgather.setting("sensitive_columns") -%}
{% set quoted = "attributes." ~ kgather.quoted_name(column) -%}
{% set part -%}
select
  users.user_code,
  '{{ column | replace("'", "''") }}' as attribute,
  {% if deviation -%}
  coalesce(
    try_cast({{ quoted }} as double),
    error(
      'kgather refuses the input: the deviation of the column {{ column | replace("'", "''") }} is asked for, but it '
      || 'does not hold numbers. Ask for another sensitive_diversity.'
    )
  ) as value
  {%- else -%}
  cast(dense_rank() over (order by {{ quoted }} asc) as double) as value
  {%- endif %}
from {{ ref("stg_kgather__user_attributes") }} as attributes
join {{ ref("int_kgather__users") }} as users
  on cast(users.user_id as varchar) = cast(attributes.user_id as varchar)
where {{ quoted }} is not null
{%- endset %}
{% do parts.append(part) -%}
{% endfor -%}
{% if parts -%}
{{ parts | join("\nunion all\n") }}
{%- else -%}
select user_code, '' as attribute, 0.0::double as value
from {{ ref("int_kgather__users") }}
where false
{%- endif %}
