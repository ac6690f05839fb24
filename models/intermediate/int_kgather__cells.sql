{{ config(materialized="view", enabled=kgather.has_cells()) }}
{% set top_items = kgather.top_items() | trim -%}
-- Which cells of groups x items the release shows, but for those that are added for the diversity of items.
{% if kgather.homogenize() == "pure" or var("cells") == "rated" -%}
select cells.group_id, cells.item_id
from {{ ref("int_kgather__rated_cells") }} as cells
{% if top_items %}semi join {{ kgather.most_rated(top_items) }} as items using (item_id){% endif %}
{% if kgather.homogenize() == "pure" and var("single_rater") == "drop" -%}
where cells.raters > 1
{%- endif %}
{%- else -%}
select groups.group_id, items.item_id
from (select distinct group_id from {{ ref("int_kgather__groups") }}) as groups
cross join {% if top_items %}{{ kgather.most_rated(top_items) }}{% else %}{{ ref("int_kgather__items") }}{% endif %} as items
{%- endif %}
