{{ config(enabled=kgather.publishes()) }}
{% set groups = ref("kgather__groups") -%}
{% set members = ref("kgather__members") -%}
{% set low_rank = kgather.is_low_rank() -%}
{% set cells = ref("kgather__group_vectors") if low_rank else ref("kgather__ratings") if kgather.has_cells() -%}
{% set popular_items = kgather.popular_items() | trim if kgather.has_cells() -%}
{% set may_be_empty = kgather.form_hook("may_be_empty") -%}
{% set generalized = ref("kgather__generalized") if kgather.generalize() != "none" -%}
{% set on_artifacts = kgather.gathers_on_artifacts() -%}
{% set by_level = kgather.users_may_stand_alone() -%}
{% set method = kgather.method_facts(kgather.setting("method")) -%}
{% set leaves_out = kgather.may_leave_users_out() -%}
{% set personal = kgather.personal() -%}
{% set personal_columns = [] -%}
{% for column in kgather.setting("personal_columns") -%}
  {% do personal_columns.append(kgather.quoted_name(column)) -%}
{% endfor -%}
{% set shown_columns = [] -%}
{% for column in kgather.personal_beside() -%}
  {% do shown_columns.append(kgather.quoted_name(column)) -%}
{% endfor -%}
{% for artifact in kgather.artifact_ids(ref("int_kgather__artifact_items")) if generalized -%}
  {% do shown_columns.append(kgather.quoted_name(artifact)) -%}
{% endfor -%}
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

gathered_users as (
  select distinct user_code
  from {{
    ref("int_kgather__gathered" if leaves_out else "int_kgather__artifact_ratings" if on_artifacts
      else "int_kgather__users")
  }}
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
    {{ "null" if by_level else kgather.setting("k") }} as promised,
    'at least' as comparison,
    (select min(members) from class_sizes) as measured

  union all
  select
    2,
    'groups whose size is not the number of their members',
    0,
    'exactly',
    (select count(*) from class_sizes where members <> group_size)

  {% if cells -%}
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
  {%- endif %}

  union all
  select
    4,
    'users {{ "not left out" if leaves_out else "with artifacts" if on_artifacts else "of the input" }} in exactly one group',
    (select count(*) from gathered_users),
    'exactly',
    (
      select count(*)
      from (
        select users.user_id
        from {{ ref("int_kgather__groups") }} as groups
        join {{ ref("int_kgather__users") }} as users using (user_id)
        semi join gathered_users using (user_code)
        group by users.user_id
        having count(*) = 1
      )
    )

  union all
  select
    5,
    'pseudonyms, one for each user of the release',
    (select count(*) from gathered_users),
    'exactly',
    (select count(distinct pseudonym) from {{ members }})

  union all
  select
    6,
    'rows that were read and neither staged nor rejected',
    0,
    'exactly',
    (select read_rows - staged_rows - rejected_rows from input)

  union all
  select
    25,
    'signs that items are people',
    {{ "null" if kgather.setting("items_confirmed") else 0 }},
    'exactly',
    (
      select count(*)
      from kg_signs_of_people({{ kgather.named(ref("int_kgather__users")) }}, {{ kgather.named(ref("int_kgather__items")) }})
    )

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

  {% if kgather.setting("item_epsilon") is not none -%}
  union all
  select
    29,
    'measurements of the items'' vectors without a charge',
    0,
    'exactly',
    (
      select count(*) filter (not charge.rho > 0) + if(count(*) = 0, 1, 0)
      from {{ ref("int_kgather__factors") }}
      where side = 'charge'
    )
  {%- elif kgather.form_facts(kgather.homogenize()).needs_solver %}
  union all
  select
    26,
    'items with fewer than {{ kgather.least_raters() }} raters that have a vector of their own',
    0,
    'exactly',
    (
      -- Before noise, as with it every item differs: all of them have the same vector.
      select greatest(count(distinct (factors.level, factors.factor)) - 1, 0)
      from {{ ref("int_kgather__factors") }} as factors
      join {{ ref("int_kgather__items") }} as items on factors.code = items.item_code
      where factors.side = 'item' and items.raters < {{ kgather.least_raters() }}
    )

  union all
  select
    27,
    'items of the release without noise in their vectors',
    {{ "null" if kgather.setting("item_noise") == 0 else 0 }},
    'exactly',
    (
      select count(*)
      from {{ ref("int_kgather__factors") }} as shown
      join {{ ref("int_kgather__factors") }} as learnt on shown.code = learnt.code
      where shown.side = 'shown' and learnt.side = 'item'
        and shown.level = learnt.level and shown.factor = learnt.factor
        -- Where all ratings are the same there is nothing to hide.
        and (select min(rating) < max(rating) from {{ ref("stg_kgather__ratings") }})
    )

  {%- endif %}

  {% if kgather.form_facts(kgather.homogenize()).needs_solver -%}
  union all
  select
    28,
    'shown {{ "numbers" if low_rank else "ratings" }} with more decimals than they are worth',
    0,
    'exactly',
    {% if low_rank -%}
    (
      select count(*)
      from (
        select unnest(list_append(factor, level)) :: double as number from {{ ref("kgather__group_vectors") }}
        union all
        select unnest(list_append(factor, level)) :: double from {{ ref("kgather__item_vectors") }}
      )
      cross join {{ kgather.vector_decimals() }}
      where abs(number - round(number, decimals.shown)) > 1e-6 * greatest(abs(number), 1)
    )
    {%- else -%}
    (
      select count(*)
      from {{ cells }}
      where abs(rating - round(rating, {{ kgather.shown_digits() }})) > 1e-9 * greatest(abs(rating), 1)
    )
    {%- endif %}
  {%- endif %}

  {% if cells and not low_rank -%}
  union all
  select
    8,
    'ratings off the scale',
    0,
    'exactly',
    (
      select count(*)
      from {{ cells }}
      where rating is null
        or not isfinite(rating)
        or rating not between (select scale_min from scale) and (select scale_max from scale)
    )
  {%- endif %}
  {{ kgather.form_checks() }}

  {% if by_level -%}
  union all
  select
    10,
    'users in a group smaller than they ask for',
    {{ 0 if method.anonymous else "null" }},
    'exactly',
    (
      select count(*)
      from {{ ref("int_kgather__user_levels") }} as levels
      join {{ ref("int_kgather__groups") }} as groups using (user_id)
      join class_sizes on class_sizes.group_id = groups.group_id
      where class_sizes.members < levels.level
    )

  union all
  select
    11,
    'users who stand alone',
    null,
    'exactly',
    (select count(*) from class_sizes where members = 1)
  {%- endif %}

  {% if on_artifacts -%}
  union all
  select
    12,
    'users set aside: they rated none of the artifacts',
    null,
    'exactly',
    (select users from input) - (select count(*) from gathered_users)
  {%- endif %}

  {% if leaves_out -%}
  union all
  select
    30,
    'users left out: they are in no clique of users within epsilon of each other',
    null,
    'exactly',
    (select users from input) - (select count(*) from gathered_users)
  {%- endif %}

  {% if generalized -%}
  union all
  select
    13,
    'k-anonymity: rows in the smallest class of the generalized table',
    {{ "null" if by_level else kgather.setting("k") }},
    'at least',
    (
      select min(class_size)
      from (
        select count(*) as class_size
        from {{ generalized }}
        group by
          {%- for artifact in kgather.artifact_ids(ref("int_kgather__artifact_items")) %}
          {{ ", " if not loop.first }}{{ kgather.quoted_name(artifact) }}
          {%- endfor %}
      )
    )

  union all
  select
    14,
    'rows of the generalized table, one for each user of the release',
    (select count(*) from gathered_users),
    'exactly',
    (select count(*) from {{ generalized }})

  {% if kgather.personal_beside() -%}
  union all
  select
    15,
    'users in the smallest class of all that is shown of somebody, personal attributes included',
    {{ "null" if by_level or personal == "as_is" else kgather.setting("k") }},
    'at least',
    (select min(class_size) from (select count(*) as class_size from {{ generalized }} group by {{ shown_columns | join(', ') }}))
  {%- endif %}
  {%- endif %}

  {% if personal == "separate" -%}
  union all
  select
    16,
    'users in the smallest class of the personal attributes',
    {{ kgather.setting("k") }},
    'at least',
    (
      select min(class_size)
      from (select count(*) as class_size from {{ ref("kgather__personal") }} group by {{ personal_columns | join(', ') }})
    )

  union all
  select
    17,
    'users in the smallest intersection of a group and a class of the personal attributes',
    null,
    'at least',
    (
      select min(class_size)
      from (
        select count(*) as class_size
        from {{ ref("int_kgather__personal") }} as personal
        join {{ ref("int_kgather__groups") }} as groups using (user_id)
        group by groups.group_id, {{ personal_columns | join(', ') }}
      )
    )
  {%- endif %}

  {% if kgather.setting("history") -%}
  union all
  select
    35,
    'k-anonymity over releases: people in the smallest set that one group of each release has in common',
    {{ kgather.setting("k") }},
    'at least',
    (
      select min(people)
      from (
        -- Of two releases, whoever is in both; a pair of a release and itself is the release alone.
        select count(*) as people
        from {{ ref("kgather_history") }} as earlier
        join {{ ref("kgather_history") }} as today using (user_id)
        where today.release_number = (select max(release_number) from {{ ref("kgather_history") }})
          and today.state = 'present' and earlier.state = 'present'
        group by earlier.release_number, earlier.group_id, today.group_id

        union all

        -- Of all releases together, whoever is in all since they came.
        select count(*) as people
        from (
          select list(group_id order by release_number asc) as groups
          from {{ ref("kgather_history") }}
          where state = 'present'
          group by user_id
          having max(release_number) = (select max(release_number) from {{ ref("kgather_history") }})
        )
        group by groups
      )
    )

  union all
  select
    36,
    'people of this release whose group is another in the map that is kept',
    0,
    'exactly',
    (
      select count(*)
      from {{ members }} as members
      full join (
        select group_id, count(*) as kept
        from {{ ref("kgather_history") }}
        where state = 'present'
          and release_number = (select max(release_number) from {{ ref("kgather_history") }})
        group by group_id
      ) as kept using (group_id)
      where kept.kept is null or members.pseudonym is null
    ) + (
      select coalesce(sum(abs(class_sizes.members - kept.kept)), 0)
      from class_sizes
      join (
        select group_id, count(*) as kept
        from {{ ref("kgather_history") }}
        where state = 'present'
          and release_number = (select max(release_number) from {{ ref("kgather_history") }})
        group by group_id
      ) as kept using (group_id)
    )

  -- In whole steps of k: one person more or less of these would be an answer about that person.
  {% for state, told in {
    "waiting": "newcomers who wait for the next release, in steps of k",
    "withdrawn": "people of groups that were withdrawn, in steps of k",
    "left": "people who were in an earlier release and have left, in steps of k",
  }.items() -%}
  union all
  select
    {{ 36 + loop.index }},
    '{{ told }}',
    null,
    'exactly',
    (
      select count(*) // {{ kgather.setting("k") }} * {{ kgather.setting("k") }}
      from {{ ref("kgather_history") }}
      where state = '{{ state }}'
        and release_number = (select max(release_number) from {{ ref("kgather_history") }})
    )

  {% endfor -%}
  {%- endif %}
  {% if 'unchanged' in method.tells %}
  union all
  select
    18,
    'users in groups that are (k, epsilon)-anonymous as they are',
    null,
    'at least',
    (select count(*) from {{ ref("int_kgather__gathered") }} where unchanged)
  {%- endif %}

  {% if 'bins' in method.tells -%}
  union all
  select
    19,
    'users in the smallest bin',
    null,
    'at least',
    (select min(users) from (select count(*) as users from {{ ref("int_kgather__gathered") }} group by bin))

  union all
  select
    20,
    'users in the largest bin',
    null,
    'at least',
    (select max(users) from (select count(*) as users from {{ ref("int_kgather__gathered") }} group by bin))
  {%- endif %}

  {% if kgather.adds_cells() -%}
  union all
  select
    21,
    '(b, l)-diversity: groups that show the set of {{ kgather.setting("diversity_b") }} items which the fewest show',
    {{ kgather.setting("diversity_l") }},
    'at least',
    (select least_groups from {{ ref("int_kgather__item_coverage") }})

  union all
  select
    22,
    'cells added for (b, l)-diversity',
    null,
    'exactly',
    (select count(*) from {{ ref("int_kgather__added_cells") }})
  {%- endif %}

  {% if popular_items -%}
  union all
  select
    24,
    'groups that show {{ "fewer" if kgather.adds_cells() else "other" }} than {{ popular_items }} items, where there are as many',
    0,
    'exactly',
    (
      select count(*)
      from (
        select group_id
        from {{ cells }}
        group by group_id
        having count(*) {{ "<" if kgather.adds_cells() else "<>" }} least({{ popular_items }}, (select items from input))
      )
    )
  {%- endif %}

  {% if kgather.has_sensitive() -%}
  union all
  select
    23,
    '{{ kgather.diversity_name() }}: groups and sensitive attributes without it',
    0,
    'exactly',
    ({{ kgather.count_undiverse(ref("int_kgather__sensitive_values"), ref("int_kgather__gathered")) }})
  {%- endif %}
)

select
  cast("check" as varchar) as "check",
  cast(promised as bigint) as promised,
  cast(measured as bigint) as measured,
  cast(
    promised is null or case comparison when 'at least' then measured >= promised else measured = promised end
    as boolean
  ) as passed,
  {{ kgather.stamp() }}
from checks
order by position asc
