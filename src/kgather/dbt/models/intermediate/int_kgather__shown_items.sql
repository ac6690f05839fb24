{{ config(enabled=kgather.publishes(), materialized="view") }}
{% set top_items = kgather.top_items() | trim -%}
-- The items that the release may show. Which they are hangs on counts with stored noise, not on any one person.
select items.item_id, items.item_code
from {{ ref("int_kgather__items") }} as items
{% if kgather.setting("rare_items") == "drop" -%}
semi join {{ ref("int_kgather__item_factors") }} as factors on factors.item_id = items.item_id
{% endif -%}
{% if top_items -%}
join {{ ref("int_kgather__item_noise") }} as noise on noise.item_code = items.item_code
order by items.raters + noise.raters desc, items.item_id asc
limit {{ top_items }}
{%- endif %}
