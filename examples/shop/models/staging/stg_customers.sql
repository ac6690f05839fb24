select "CustomerId" as customer_id, "Age" as age, "Postcode" as postcode, "Spent" as spent
from {{ ref("customers") }}
