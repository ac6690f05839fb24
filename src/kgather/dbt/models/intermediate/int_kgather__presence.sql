{% set history = kgather.setting("history") -%}
{{ config(enabled=kgather.publishes(), materialized="table" if history else "view") }}
{% set last = kgather.last_of("kgather_history") -%}
{% set origin = kgather.history_of_origin() -%}
{% set k = kgather.setting("k") or 1 -%}
{% set added = ref("base_kgather__added_ratings") -%}
{% if history %}{% do kgather.refuse_another_chain() %}{% endif -%}
-- What becomes of everybody whom the chain of releases knows or the input has: (user_id, state, lineage). Empty where
-- releases do not follow each other.
--   present: in the group of the last release, which stays; lineage is the id that it was formed with
--   new: in a group that is formed now
--   waiting: a newcomer, until there are enough of them
--   withdrawn: of a group that fewer than k members were left of
--   left: was in a release, and then in none; who comes back stays away, as only they would be in both
-- Whoever is none of the first two is in no release from then on, or not yet. Where the release is within another one,
-- whoever is not in that is not in this.
{% if not history and origin -%}
select
  user_id,
  state,
  cast(null as bigint) as lineage
from {{ origin }}
where state <> 'present'
  and release_number = (select max(release_number) from {{ origin }})
{%- elif not history -%}
select
  cast(null as varchar) as user_id,
  cast(null as varchar) as state,
  cast(null as bigint) as lineage
where false
{%- else -%}
with of_origin as (
  {% if origin -%}
  select user_id, state
  from {{ origin }}
  where release_number = (select max(release_number) from {{ origin }})
  {%- else -%}
  select cast(null as varchar) as user_id, cast(null as varchar) as state
  where false
  {%- endif %}
),

absent as (
  select user_id, state
  from of_origin
  where state <> 'present'
),

known as (
  {% if last -%}
  select user_id, state, lineage
  from {{ last }}
  where release_number = (select max(release_number) from {{ last }})
  {%- else -%}
  select
    cast(null as varchar) as user_id,
    cast(null as varchar) as state,
    cast(null as bigint) as lineage
  where false
  {%- endif %}
),

there as (
  select cast(user_id as varchar) as user_id
  from {{ added if kgather.takes_over() else kgather.usable_ratings() }}
  {% if origin -%}
  where cast(user_id as varchar) in (select user_id from of_origin where state = 'present')
  {% endif -%}
  group by user_id
  {% if kgather.setting("min_ratings") > 1 -%}
  having count(distinct item_id) >= {{ kgather.setting("min_ratings") }}
  {%- endif %}
  {%- if kgather.takes_over() %}

  union

  -- Their ratings are those of the last release.
  select user_id
  from known
  anti join loaded.removed using (user_id)
  where state = 'present'
    {% if origin -%}
    and user_id in (select user_id from of_origin where state = 'present')
    {%- endif %}
  {%- endif %}
),

remaining as (
  select lineage, count(*) as members
  from known
  semi join there using (user_id)
  where state = 'present'
  group by lineage
),

newcomers as (
  select count(*) as people
  from there
  left join known using (user_id)
  where coalesce(known.state, 'waiting') = 'waiting'
)

select
  user_id,
  case
    when known.state in ('withdrawn', 'left') then known.state
    when known.state = 'erased' then 'left'
    when absent.state is not null then absent.state
    when known.state = 'present' and there.user_id is null then 'left'
    when known.state = 'present' and remaining.members >= {{ k }} then 'present'
    when known.state = 'present' then 'withdrawn'
    {% if last -%}
    when (select people from newcomers) < {{ [2 * k, kgather.gathered_size()] | max }} then 'waiting'
    {% endif -%}
    else 'new'
  end as state,
  lineage
from known
full join there using (user_id)
full join absent using (user_id)
left join remaining using (lineage)
-- Of newcomers who went before they were in any release nothing is kept.
where there.user_id is not null or absent.user_id is not null or known.state <> 'waiting'
{%- endif %}
