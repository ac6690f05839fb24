-- The pairs of user and item that were rated more than once, each with the time of its latest rating.
select user_id, item_id, max(rated_at) as latest_at
from {{ ref("base_kgather__read_ratings") }}
where reason is null
group by user_id, item_id
having count(*) > 1
