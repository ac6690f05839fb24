{{ config(enabled=kgather.publishes(), materialized="view") }}
{% set attributes = (kgather.setting("user_attributes") or "") | string -%}
-- What is known of users beside their ratings. No user is known where the var user_attributes is not set.
{% if not attributes -%}
select user_id
from {{ ref("stg_kgather__ratings") }}
where false
{%- else -%}
{% set input = kgather.input_of(attributes) -%}
{% set column = kgather.attribute_columns(input) if execute else {"user": "user_id", "others": []} -%}
select {{ ([column.user ~ " as user_id"] + column.others) | join(", ") }}
from {{ input }}
{%- endif %}
