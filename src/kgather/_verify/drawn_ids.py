"""Whether group ids and pseudonyms look drawn at random, as kgather.udfs.gathering._group_ids draws them.

No test can prove randomness; these find ids that were counted, copied or built from parts. They hold for ids that are
drawn: each rule flags a release of a million groups and ten million members wrongly once in 5,000 times at most (with
UUIDs once in 50), and one of a thousand groups and members less than once in a million times.

Group ids are drawn from 1 to 2^53. Flagged are ids below 2^20 (negative ones, too), ids that follow on another one, all
ids where they lie within 2^32 of each other or of 0, and all where more than half of the gaps between neighbours are
the same (of five ids or more).

Pseudonyms are 32 letters of 16 (or the text of a random UUID). Flagged are those of any other form, and those that have
their first or their last 16 characters in common with another one.
"""

# Sums in 128 bits, as ids may be anything.
UNLIKE_GROUP_IDS = """
with ids as (
  select distinct cast(group_id as hugeint) as id from groups
),
gaps as (
  select id, id - lag(id) over (order by id) as gap from ids
),
common as (
  select count(*) as times from gaps where gap is not null group by gap order by times desc limit 1
),
whole as (
  select
    count(*) as ids,
    max(abs(id)) < 4294967296 or (count(*) > 1 and max(id) - min(id) < 4294967296)
      or (count(*) > 4 and 2 * (select times from common) >= count(*)) as counted
  from ids
)
select
  case
    when any_value(whole.counted) then any_value(whole.ids)
    else count(*) filter (where id < 1048576 or gap = 1)
  end
from gaps
cross join whole
"""

UNLIKE_PSEUDONYMS = """
with shared_heads as (
  select left(pseudonym, 16) as part from members group by part having count(distinct pseudonym) > 1
),
shared_tails as (
  select right(pseudonym, 16) as part from members group by part having count(distinct pseudonym) > 1
)
select count(*)
from members
where not coalesce(
    regexp_full_match(
      pseudonym,
      '[bcdfghjklmnpqrst]{32}|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
    ),
    false
  )
  or left(pseudonym, 16) in (select part from shared_heads)
  or right(pseudonym, 16) in (select part from shared_tails)
"""
