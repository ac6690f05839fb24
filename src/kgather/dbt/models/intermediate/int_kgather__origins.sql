{#- One that is not there is refused when the run starts, in a sentence. -#}
{% set origin = kgather.setting("within") if context.get("kgather_" ~ kgather.setting("within")) -%}
{{ config(enabled=kgather.publishes(), materialized="view") }}
-- The group of another release that each user is in, where this one's groups are made of those: the setting within.
select
  {% if origin -%}
  users.user_code,
  cast(origins.group_id as bigint) as group_id
from {{ ref("int_kgather_" ~ origin ~ "__groups") }} as origins
join {{ ref("int_kgather__users") }} as users on cast(users.user_id as varchar) = cast(origins.user_id as varchar)
  {%- else -%}
  cast(null as integer) as user_code,
  cast(null as bigint) as group_id
where false
  {%- endif %}
