{{ config(materialized="view", enabled=project_name == "kgather") }}
-- The made-up ratings beside it, for a checkout in which dbt runs.
select user_id, item_id, rating, rated_at
from {{ source("examples", "ratings") }}
