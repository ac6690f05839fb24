{{ config(enabled=kgather.publishes()) }}
-- Where the ratings of the last release are taken over: those that come beside them or take the place of one. was_read:
-- in this run; others were read before, of newcomers who waited. Empty where all ratings were read.
{% if not kgather.takes_over() -%}
select user_id, item_id, rating, rated_at, true as was_read
from {{ ref("base_kgather__read_ratings") }}
where false
{%- else -%}
with shaped as {{ kgather.shaped_ratings() }}

select user_id, item_id, rating, rated_at, true as was_read
from shaped

union all

select user_id, item_id, rating, rated_at, false as was_read
from {{ kgather.of_last("base_kgather__waiting_ratings") }} as waiting
anti join shaped using (user_id, item_id)
anti join loaded.removed on cast(waiting.user_id as varchar) = removed.user_id
{%- endif %}
