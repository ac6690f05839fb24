{{ config(materialized="view", enabled=kgather.adds_cells()) }}
{% set top_items = kgather.top_items() | trim -%}
-- The items that the release may show.
select item_id, item_code
from {% if top_items %}{{ kgather.most_rated(top_items, "item_id, item_code") }}{% else %}{{ ref("int_kgather__items") }}{% endif %}
