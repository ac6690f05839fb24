{{ config(enabled=kgather.publishes()) }}
{% set repeated = ref("base_kgather__repeated_pairs") -%}
{% set repeats = kgather.has_rows(repeated) -%}
{% set counts = kgather.setting("repeats") in ("sum", "count") -%}
{% set cap = kgather.setting("rating_cap") -%}
-- One row per user and item, in their order. Of a repeated pair the latest rating is kept, among equally late ones their
-- mean, or what the var repeats says; then what rating_cap and rating_log say is done.
with usable as (
  select user_id, item_id, rating, rated_at
  from {{ kgather.usable_ratings() }}
),

one_per_pair as {% if counts %}materialized {% endif %}(
  {% if not repeats -%}
  select user_id, item_id, {{ "1.0" if kgather.setting("repeats") == "count" else "rating" }} as rating, rated_at
  from usable
  {%- else -%}
  select
    usable.user_id,
    usable.item_id,
    {{ "1.0" if kgather.setting("repeats") == "count" else "usable.rating" }} as rating,
    usable.rated_at
  from usable
  anti join {{ repeated }} as repeated using (user_id, item_id)

  union all

  select user_id, item_id, {{ kgather.of_repeats("usable.rating") }} as rating, repeated.latest_at as rated_at
  from usable
  join {{ repeated }} as repeated using (user_id, item_id)
  where {{ kgather.is_kept("usable.rated_at", "repeated") }}
  group by user_id, item_id, repeated.latest_at
  {%- endif %}
),

{% if counts and cap is none -%}
-- What k users reach: the heaviest user alone would be the end of the scale.
capped as (
  select min(most) as cap
  from (
    select max(rating) as most
    from one_per_pair
    group by user_id
    order by most desc
    limit {{ kgather.setting("k") }}
  )
),

{% endif -%}
shaped as (
  select
    user_id,
    item_id,
    {% set capped = "least(rating, (select cap from capped))" if counts and cap is none
      else "least(rating, " ~ cap ~ ")" if cap is not none else "rating" -%}
    {{ "ln(1 + " ~ capped ~ ")" if kgather.setting("rating_log") else capped }} as rating,
    rated_at
  from one_per_pair
)

select shaped.user_id, shaped.item_id, shaped.rating, shaped.rated_at
from shaped
{% if kgather.setting("min_ratings") > 1 -%}
semi join (
  select user_id
  from one_per_pair
  group by user_id
  having count(*) >= {{ kgather.setting("min_ratings") }}
) as active using (user_id)
{% endif -%}
{% if kgather.leaves_people_out() -%}
anti join {{ kgather.absent_people() }} as absent on cast(shaped.user_id as varchar) = absent.user_id
{% endif -%}
{% if repeats -%}
order by user_id, item_id
{%- endif %}
