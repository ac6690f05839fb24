{{ config(enabled=kgather.publishes() and kgather.setting("history")) }}
{% set last = kgather.last_of("kgather_chain") -%}
{% set settings = kgather.chain_settings() -%}
-- The releases of the chain, one row each: what they have in common, and what their items' vectors cost.
{% if last -%}
select release_number, settings, rho
from {{ last }}
{%- endif %}
{% if last and not flags.EMPTY %}
union all
{% endif %}
{%- if not last or not flags.EMPTY -%}
select
  (select max(release_number) from {{ ref("kgather_history") }}) as release_number,
  '{{ settings | replace("'", "''") }}' as settings,
  (
    select coalesce(sum(charge.rho), 0.0)
    from {{ ref("int_kgather__factors") }}
    where side = 'charge'
  ) as rho
{%- endif %}
