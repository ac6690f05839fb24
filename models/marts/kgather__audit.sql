{% set groups = ref("kgather__groups") -%}
{% set members = ref("kgather__members") -%}
{% set ratings = ref("kgather__ratings") -%}
{% set low_rank = var("cells") == "low_rank" -%}
{% set cells = ref("kgather__group_vectors") if low_rank else ratings -%}
{% set may_be_empty = var("homogenize") == "pure" and (var("single_rater") == "drop" or kgather.top_items() | trim) -%}
-- What the release promises and what was measured, on the release itself wherever it can be. A null promise is
-- none: the measure is there to be known.
with class_sizes as (
  -- Members of one group have the same rows in the release: a group is an equivalence class, or part of one.
  select groups.group_id, groups.group_size, count(members.pseudonym) as members
  from {{ groups }} as groups
  left join {{ members }} as members using (group_id)
  group by groups.group_id, groups.group_size
),

input as (
  select * from {{ ref("int_kgather__checked_input") }}
),

scale as (
  select * from {{ ref("int_kgather__scale") }}
),

original_users as (
  select cast(user_id as varchar) as user_id
  from {{ ref("int_kgather__users") }}
),

checks as (
  select
    1 as position,
    'k-anonymity: users in the smallest group' as "check",
    {{ var("k") }} as promised,
    'at least' as comparison,
    (select min(members) from class_sizes) as measured

  union all
  select
    2,
    'groups whose size is not the number of their members',
    0,
    'exactly',
    (select count(*) from class_sizes where members <> group_size)

  union all
  select
    3,
    'members or ratings without a group, groups without ratings',
    0,
    'exactly',
    (select count(*) from {{ members }} anti join {{ groups }} using (group_id))
    + (select count(*) from {{ cells }} anti join {{ groups }} using (group_id))
    {% if not may_be_empty -%}
    + (select count(*) from {{ groups }} anti join {{ cells }} using (group_id))
    {%- endif %}

  union all
  select
    4,
    'users of the input in exactly one group',
    (select users from input),
    'exactly',
    (
      select count(*)
      from (
        select user_id
        from {{ ref("int_kgather__groups") }}
        semi join {{ ref("int_kgather__users") }} using (user_id)
        group by user_id
        having count(*) = 1
      )
    )

  union all
  select
    5,
    'pseudonyms, one for each user of the input',
    (select users from input),
    'exactly',
    (select count(distinct pseudonym) from {{ members }})

  union all
  select
    6,
    'rows staged or rejected, of those read',
    (select read_rows from input),
    'exactly',
    (select staged_rows + rejected_rows from input)

  union all
  select
    7,
    'original user ids among pseudonyms and group ids',
    0,
    'exactly',
    (select count(*) from original_users where user_id in (select pseudonym from {{ members }}))
    + (
      select count(*)
      from original_users
      where user_id in (select cast(group_id as varchar) from {{ groups }})
    )

  {% if not low_rank -%}
  union all
  select
    8,
    'ratings off the scale',
    0,
    'exactly',
    (
      select count(*)
      from {{ ratings }}
      where rating is null
        or not isfinite(rating)
        or rating not between (select scale_min from scale) and (select scale_max from scale)
    )
  {%- endif %}
  {% if var("homogenize") == "pure" %}
  union all
  select
    9,
    'cells that show the exact rating of their only rater',
    {{ 0 if var("single_rater") == "drop" else "null" }},
    'exactly',
    (
      select count(*)
      from {{ ratings }} as released
      join {{ ref("int_kgather__rated_cells") }} as rated using (group_id, item_id)
      where rated.raters = 1 and released.rating = rated.rating
    )
  {%- endif %}
)

select
  cast("check" as varchar) as "check",
  cast(promised as bigint) as promised,
  cast(measured as bigint) as measured,
  cast(
    promised is null or case comparison when 'at least' then measured >= promised else measured = promised end
    as boolean
  ) as passed
from checks
order by position
