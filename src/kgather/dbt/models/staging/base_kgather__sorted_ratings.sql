{{ config(enabled=kgather.publishes()) }}
{% set read = ref("base_kgather__read_ratings") -%}
-- The usable ratings by user and item, so that repeated pairs stand together; empty where they are read so already and
-- no pair is repeated: see the macro usable_ratings.
select user_id, item_id, rating, rated_at
from {{ read }}
where reason is null
{%- if kgather.strictly_ascends(read, ["user_id", "item_id"], where="reason is null") %}
  and false
{%- endif %}
order by user_id asc, item_id asc
