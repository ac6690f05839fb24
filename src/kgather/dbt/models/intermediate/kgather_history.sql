{{ config(enabled=kgather.publishes() and kgather.setting("history")) }}
{% set last = kgather.last_of("kgather_history") -%}
-- The secret map of all releases of the chain, one row for each release and everybody whom it knows. It outlasts the run,
-- and never leaves the working database: who has it has everybody's group.
{% if last -%}
select release_number, user_id, state, lineage, group_id
from {{ last }}
{%- endif %}
{% if last and not flags.EMPTY %}
union all
{% endif %}
{%- if not last or not flags.EMPTY -%}
{#- With --empty nobody is there, which is no reason to let everybody go. -#}
select
  {% if last -%}
  (select coalesce(max(release_number), 0) + 1 from {{ last }}) as release_number,
  {%- else -%}
  1 as release_number,
  {%- endif %}
  presence.user_id,
  case when presence.state = 'new' then 'present' else presence.state end as state,
  cast(gathered.lineage as bigint) as lineage,
  cast(gathered.group_id as bigint) as group_id
from {{ ref("int_kgather__presence") }} as presence
left join (
  select cast(users.user_id as varchar) as user_id, gathered.lineage, gathered.group_id
  from {{ ref("int_kgather__gathered") }} as gathered
  join {{ ref("int_kgather__users") }} as users using (user_code)
) as gathered using (user_id)
{%- endif %}
