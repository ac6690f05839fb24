{{ config(
  enabled=kgather.publishes(),
  materialized="incremental" if kgather.takes_over() else "table",
  incremental_strategy="append" if kgather.takes_over() else none,
  pre_hook=["{{ kgather.take_out_added() }}", "{{ kgather.take_out_people() }}"] if kgather.takes_over() else [],
  post_hook=["{{ kgather.take_out_people() }}"] if kgather.leaves_people_out() and not kgather.takes_over() else []
) }}
{% set repeated = ref("base_kgather__repeated_pairs") -%}
{% set added = ref("base_kgather__added_ratings") -%}
-- One row per user and item, in their order. Of a repeated pair the latest rating is kept, among equally late ones their
-- mean, or what the var repeats says; then what rating_cap and rating_log say is done.
{% if kgather.takes_over() -%}
-- The ratings of the last release stay where they are, without those that were taken out before: only the others come.
select added.user_id, added.item_id, added.rating, added.rated_at
from {{ added }} as added
join {{ ref("int_kgather__presence") }} as presence on cast(added.user_id as varchar) = presence.user_id
where presence.state in ('present', 'new')
{%- else -%}
with shaped as {{ kgather.shaped_ratings() }}

select shaped.user_id, shaped.item_id, shaped.rating, shaped.rated_at
from shaped
{% if kgather.setting("min_ratings") > 1 -%}
semi join (
  select user_id
  from shaped
  group by user_id
  having count(*) >= {{ kgather.setting("min_ratings") }}
) as active using (user_id)
{% endif -%}
{% if kgather.leaves_people_out() -%}
-- Those who are in no release are taken out afterwards, as a join would disturb the order: {{ ref("int_kgather__presence") }}.
{% endif -%}
{% if kgather.has_rows(repeated) -%}
order by user_id asc, item_id asc
{%- endif %}
{%- endif %}
