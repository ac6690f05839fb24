-- What the shop knows of its customers: the size of group each asks for, and an age.
select
  "CustomerId" as user_id,
  case when row_number() over (order by "CustomerId") <= 4 then 1 else 5 end as wanted,
  20 + row_number() over (order by "CustomerId") % 3 as age
from (select distinct "CustomerId" from {{ ref("stars") }})
