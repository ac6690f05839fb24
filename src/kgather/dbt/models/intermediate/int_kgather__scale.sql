{{ config(enabled=kgather.publishes()) }}
{% set scale = kgather.setting("scale") -%}
{% set takes_over = kgather.takes_over() -%}
{% set staged, read = ref("stg_kgather__ratings"), ref("base_kgather__read_ratings") -%}
-- The scale of the ratings: as declared, or inferred from them. No step: any number between the two.
{% if scale -%}
select
  cast({{ scale[0] }} as double) as scale_min,
  cast({{ scale[1] }} as double) as scale_max,
  cast({{ scale[2] if scale | length > 2 else "null" }} as double) as scale_step,
  true as declared
{%- else -%}
with steps as (
  -- Means of repeated pairs are no steps: what was read counts.
  select rating, rating - lag(rating) over (order by rating asc) as step
  from (
    select distinct rating
    from {{ staged if kgather.changes_ratings() else read }}
    {% if not kgather.changes_ratings() -%}
    where reason is null
    {%- endif %}
    {%- if takes_over and not kgather.changes_ratings() %}

    union

    -- Of what was taken over the scale is known: its steps, or its ends where it has none.
    select unnest(
      case
        when scale_step is null then [scale_min, scale_max]
        else list_transform(
          range(cast(round((scale_max - scale_min) / scale_step) as bigint) + 1),
          lambda n: scale_min + n * scale_step
        )
      end
    ) as rating
    from {{ kgather.of_last("int_kgather__scale") }}
    {%- endif %}
  )
),

smallest as (
  select min(rating) as scale_min, max(rating) as scale_max, min(step) as step, count(*) as ratings
  from steps
)

select
  scale_min,
  scale_max,
  case
    when ratings <= 101
      {% if takes_over and not kgather.changes_ratings() -%}
      and (select scale_step is not null from {{ kgather.of_last("int_kgather__scale") }})
      {% endif -%}
      and (select bool_and(abs(steps.step / smallest.step - round(steps.step / smallest.step)) < 1e-6) from steps)
      then step
  end as scale_step,
  false as declared
from smallest
{%- endif %}
