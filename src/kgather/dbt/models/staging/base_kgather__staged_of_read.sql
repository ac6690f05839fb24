{{ config(enabled=kgather.publishes(), materialized="view") }}
{% set added, users = ref("base_kgather__added_ratings"), ref("int_kgather__users") -%}
-- The staged ratings that were read in this run: all, but where those of the last release are taken over.
{% if kgather.takes_over() -%}
select user_id, item_id
from {{ added }}
semi join {{ users }} using (user_id)
where was_read
{%- else -%}
select user_id, item_id
from {{ ref("stg_kgather__ratings") }}
{%- endif %}
