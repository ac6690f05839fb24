{{ config(enabled=kgather.publishes()) }}
{% set column = kgather.setting("level_column") -%}
-- The size of group that each user asks for: k, unless a column of user_attributes says otherwise.
{% if not column -%}
select user_id, user_code, {{ kgather.setting("k") or 1 }} as level
from {{ ref("int_kgather__users") }}
{%- else -%}
with asked as (
  select
    users.user_id,
    users.user_code,
    attributes.{{ kgather.quoted_name(column) }} as given,
    try_cast(attributes.{{ kgather.quoted_name(column) }} as double) as level
  from {{ ref("int_kgather__users") }} as users
  left join {{ ref("stg_kgather__user_attributes") }} as attributes
    on cast(attributes.user_id as varchar) = cast(users.user_id as varchar)
),

bad as (
  select count(*) as users
  from asked
  where given is not null and (level is null or not level >= 1 or level <> floor(level) or not isfinite(level))
)

select
  user_id,
  user_code,
  case
    when (select users from bad) > 0
      then error(
        'kgather refuses the input: ' || (select users from bad) || ' users have a level in the column '
        || '{{ column | replace("'", "''") }} that is no whole number of at least 1.'
      )
    else cast(coalesce(level, {{ kgather.setting("k") }}) as integer)
  end as level
from asked
{%- endif %}
