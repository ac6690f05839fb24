{{ config(materialized="view") }}
{% set top_items = kgather.top_items() | trim -%}
-- Which cells of groups x items the release shows.
{% if var("homogenize") == "pure" or var("cells") == "rated" -%}
select cells.group_id, cells.item_id
from {{ ref("int_kgather__rated_cells") }} as cells
{% if top_items %}semi join {{ kgather.most_rated(top_items) }} as items using (item_id){% endif %}
{%- else -%}
select group_vectors.group_id, items.item_id
from {{ ref("int_kgather__group_vectors") }} as group_vectors
cross join {% if top_items %}{{ kgather.most_rated(top_items) }}{% else %}{{ ref("int_kgather__items") }}{% endif %} as items
{%- endif %}
