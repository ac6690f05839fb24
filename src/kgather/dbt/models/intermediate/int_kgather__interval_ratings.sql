{{ config(materialized="view", enabled=kgather.publishes() and kgather.homogenize() == "interval") }}
-- The ratings that can identify: all but those of sensitive items, which are shown as they are.
select user_id, item_id, rating
from {{ ref("stg_kgather__ratings") }}
{% if kgather.setting("sensitive_items") -%}
where {{ kgather.is_not_sensitive("item_id") }}
{%- endif %}
