-- How many customers gave a product stars: counts, shown in steps of ten.
select "ITEM_ID" as product, 10 * (count(*) // 10) as customers
from {{ ref("stg_stars") }}
group by all
having count(*) >= 10
