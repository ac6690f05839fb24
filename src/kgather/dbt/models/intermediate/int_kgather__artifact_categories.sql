{{ config(enabled=kgather.publishes(), materialized="view") }}
-- What users have of the categorical artifacts, as numbers: (user_code, place, category). Null is not there.
{% set parts = [] -%}
{% for column in kgather.setting("categorical_artifacts") -%}
{% set quoted = "attributes." ~ kgather.quoted_name(column) -%}
{% set part -%}
select
  users.user_code,
  {{ loop.index }} as place,
  cast(dense_rank() over (order by {{ quoted }} asc, encode(cast({{ quoted }} as varchar)) asc) as double) as category
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
select user_code, 1 as place, 0.0::double as category
from {{ ref("int_kgather__users") }}
where false
{%- endif %}
