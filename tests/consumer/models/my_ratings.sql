-- The shop's stars as kgather wants to see them. Items are numbers, or text where the run says so.
select
  "CustomerId" as user_id,
  {% if var("item_id_type", "bigint") == "varchar" %}'P-' || {% endif %}"Product" as item_id,
  "Stars" as rating,
  "GivenOn" as rated_at
from {{ ref("stars") }}
