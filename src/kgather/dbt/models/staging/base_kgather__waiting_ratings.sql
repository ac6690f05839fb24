{{ config(enabled=kgather.publishes()) }}
{% set added, users = ref("base_kgather__added_ratings"), ref("int_kgather__users") -%}
{% set presence, repeated = ref("int_kgather__presence"), ref("base_kgather__repeated_pairs") -%}
{% set few = kgather.setting("min_ratings") > 1 -%}
-- The usable ratings of those who are in no release yet: newcomers who wait, and who has few ratings. The next release
-- takes them over, as it does what is staged.
select shaped.user_id, shaped.item_id, shaped.rating, shaped.rated_at
from {{ added if kgather.takes_over() else kgather.shaped_ratings() }} as shaped
{% if few -%}
anti join {{ users }} as users using (user_id)
anti join (
  select user_id
  from {{ presence }}
  where state in ('withdrawn', 'left')
) as gone on cast(shaped.user_id as varchar) = gone.user_id
{%- elif kgather.somebody_waits(presence) -%}
semi join (
  select user_id
  from {{ presence }}
  where state = 'waiting'
) as waiting on cast(shaped.user_id as varchar) = waiting.user_id
{%- else -%}
where false
{%- endif %}
