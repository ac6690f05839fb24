{{ config(enabled=kgather.homogenize() in ["interval", "noise"]) }}
-- One row per user and item, for the methods that leave users different from each other.
with user_ratings as (
  {% if kgather.homogenize() == "noise" -%}
  select user_id, item_id, rating
  from {{ ref("int_kgather__noisy_ratings") }}
  {%- else -%}
  select user_id, item_id, rating
  from kg_clip_to_intervals(
    '{{ ref("int_kgather__interval_ratings") }}', '{{ ref("int_kgather__groups") }}',
    '{{ ref("int_kgather__intervals") }}'
  )
  {% if kgather.setting("sensitive_items") -%}
  union all
  select user_id, item_id, rating
  from {{ ref("stg_kgather__ratings") }}
  where not {{ kgather.is_not_sensitive("item_id") }}
  {%- endif %}
  {%- endif %}
)

select
  cast(gathered.pseudonym as varchar) as pseudonym,
  cast(user_ratings.item_id as {{ kgather.setting("item_id_type") }}) as item_id,
  cast(user_ratings.rating as double) as rating
from user_ratings
join {{ ref("int_kgather__users") }} as users using (user_id)
join {{ ref("int_kgather__gathered") }} as gathered using (user_code)
order by gathered.pseudonym, user_ratings.item_id
