select "CustomerId" as "USER_ID", "Product" as "ITEM_ID", "Stars" as "RATING", "GivenOn" as rated_at
from {{ ref("stars") }}
