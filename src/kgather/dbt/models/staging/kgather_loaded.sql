{{ config(
  materialized="view",
  enabled=kgather.setting("ratings") == "kgather_loaded"
) }}
-- What the command line loaded from files: one row per line of data, those with a problem too.
select user_id, item_id, rating, rated_at, source, line, raw, problem
from loaded.ratings
