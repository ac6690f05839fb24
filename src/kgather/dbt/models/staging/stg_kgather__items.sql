{{ config(enabled=kgather.publishes(), materialized="view") }}
{% set items = (kgather.setting("items") or "") | string -%}
-- The catalogue: all items that a release may show, rated or not. Empty where the var items is not set: then the items
-- are those that somebody rated.
{% if not items -%}
select cast(null as {{ kgather.setting("item_id_type") }}) as item_id
where false
{%- else -%}
{% set input = kgather.input_of(items) -%}
{% set column = kgather.catalogue_column(input) if execute else "item_id" -%}
select distinct cast({{ column }} as {{ kgather.setting("item_id_type") }}) as item_id
from {{ input }}
where {{ column }} is not null
{%- endif %}
