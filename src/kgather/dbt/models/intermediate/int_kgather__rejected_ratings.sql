{{ config(enabled=kgather.publishes()) }}
{% set repeated_pairs = ref("base_kgather__repeated_pairs") -%}
{% set repeats = kgather.has_rows(repeated_pairs) -%}
{% set few = kgather.setting("min_ratings") > 1 -%}
{% set left_out = kgather.leaves_people_out() -%}
-- Every row that was read and not staged, with its place and the reason. All rows are read twice rather than kept: there
-- are many, and few are wanted.
with read_ratings as not materialized (
  select * from {{ ref("base_kgather__read_ratings") }}
),
{% if repeats %}
-- Only these are put in order: they are few.
of_repeated_pairs as (
  select read_ratings.*, repeated_pairs.first_at, repeated_pairs.latest_at
  from read_ratings
  join {{ repeated_pairs }} as repeated_pairs using (user_id, item_id)
  where read_ratings.reason is null
),

repeated as (
  select
    *,
    row_number() over (
      partition by user_id, item_id
      order by rated_at {{ "asc" if kgather.setting("repeats") == "first" else "desc" }} nulls last, source, line
    ) as recency
  from of_repeated_pairs
),
{% endif %}
rejected as (
  select source, line, {{ kgather.text_of_row() }} as raw, reason
  from read_ratings
  where reason is not null

  {% if repeats -%}
  union all

  select
    source,
    line,
    {{ kgather.text_of_row() }} as raw,
    {% if kgather.setting("repeats") in (none, "latest", "first") -%}
    case
      when {{ kgather.is_kept("rated_at", "repeated") }} then 'repeated pair: the mean is kept'
      else 'repeated pair: the {{ kgather.setting("repeats") or "latest" }} is kept'
    end as reason
    {%- else -%}
    'repeated pair: the {{ kgather.setting("repeats") }} is kept' as reason
    {%- endif %}
  from repeated
  where recency > 1
  {%- endif %}

  {% if few or left_out -%}
  union all

  select
    source,
    line,
    {{ kgather.text_of_row('kept.') }} as raw,
    {% if left_out -%}
    coalesce({{ kgather.reason_of_absence("absent.state") }}, 'user has fewer than {{ kgather.setting("min_ratings") }} ratings')
    {%- else -%}
    'user has fewer than {{ kgather.setting("min_ratings") }} ratings'
    {%- endif %} as reason
  from (
    select user_id, item_id, given_rating, rated_at, source, line, raw
    from read_ratings
    {% if repeats -%}
    anti join {{ repeated_pairs }} as repeated_pairs using (user_id, item_id)
    {% endif -%}
    where reason is null
    {% if repeats -%}
    union all
    select user_id, item_id, given_rating, rated_at, source, line, raw
    from repeated
    where recency = 1
    {%- endif %}
  ) as kept
  {% if few -%}
  anti join {{ ref("int_kgather__users") }} as staged using (user_id)
  {% endif -%}
  {% if left_out -%}
  {{ "left join" if few else "join" }} {{ kgather.absent_people() }} as absent on cast(kept.user_id as varchar) = absent.user_id
  {%- endif %}
  {%- endif %}
)

select
  cast(source as varchar) as source,
  cast(line as bigint) as line,
  cast(raw as varchar) as raw,
  cast(reason as varchar) as reason
from rejected
order by source asc, line asc
