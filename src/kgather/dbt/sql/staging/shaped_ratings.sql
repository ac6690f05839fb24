{#-
The usable ratings as a release uses them, one row per user and item, as a subquery. Of a repeated pair the latest rating
is kept, among equally late ones their mean, or what the var repeats says; then what rating_cap and rating_log say is
done.
-#}
{% macro shaped_ratings() -%}
{%- set repeated = kgather.ref_to("base_kgather__repeated_pairs") -%}
{%- set repeats = kgather.has_rows(repeated) -%}
{%- set counts = kgather.setting("repeats") in ("sum", "count") -%}
{%- set cap = kgather.setting("rating_cap") -%}
{#- What k users reach: the heaviest user alone would be the end of the scale. Who adds to a release keeps its end. -#}
{%- set reached = counts and cap is none -%}
{%- set shape = "least(rating, " ~ cap ~ ")" if cap is not none
  else "least(rating, (select cap from capped))" if reached and not kgather.takes_over() else "rating" -%}
{%- if kgather.setting("rating_log") %}{% set shape = "ln(1 + " ~ shape ~ ")" %}{% endif -%}
{%- if reached and kgather.takes_over() -%}
  {%- set shape = "least(" ~ shape ~ ", (select scale_max from " ~ kgather.of_last("int_kgather__scale") ~ "))" -%}
{%- endif -%}
(
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
  )
  {%- if reached and not kgather.takes_over() -%}
  ,

  capped as (
    select min(most) as cap
    from (
      select max(rating) as most
      from one_per_pair
      group by user_id
      order by most desc
      limit {{ kgather.setting("k") }}
    )
  )
  {%- endif %}

  select user_id, item_id, {{ shape }} as rating, rated_at
  from one_per_pair
)
{%- endmacro %}
