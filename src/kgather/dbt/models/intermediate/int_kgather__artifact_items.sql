{{ config(enabled=kgather.publishes()) }}
{% set artifacts = kgather.setting("artifacts") -%}
-- The items that are columns of the artifact table, in the order of the columns.
{% if artifacts is number -%}
select
  row_number() over (order by raters desc, item_id asc) as position,
  item_id,
  item_code
from (
  select item_id, item_code, raters
  from {{ ref("int_kgather__items") }}
  where raters > 0
  order by raters desc, item_id asc
  limit {{ artifacts }}
)
{%- else -%}
with asked as (
  {% for artifact in artifacts -%}
  select {{ loop.index }} as position, '{{ artifact | string | replace("'", "''") }}' as item
  {% if not loop.last %}union all{% endif %}
  {% endfor %}
)

select
  asked.position,
  -- An artifact that nobody rated is a slip of the pen, not a column of blanks.
  if(
    coalesce(items.raters, 0) = 0,
    error('kgather refuses the input: nobody rated the artifact ' || asked.item || '. Take it from the var artifacts.'),
    items.item_id
  ) as item_id,
  items.item_code
from asked
left join {{ ref("int_kgather__items") }} as items on cast(items.item_id as varchar) = asked.item
{%- endif %}
