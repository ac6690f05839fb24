{{ config(enabled=kgather.publishes(), materialized="view") }}
-- Every row that was read, with the reason why it cannot be used, or null. The one place where user data enters.
{% set ratings = (kgather.setting("ratings") or "") | string -%}
{% if not ratings -%}
{% do kgather.check_vars() if execute -%}  {#- not while dbt parses: it says at once all that is missing -#}
{% set input = this -%}
{% else -%}
{% set input = kgather.input_of(ratings) -%}
{% endif -%}
{% set column = kgather.rating_columns(input) if execute else {} %}
{% set scale = kgather.setting("scale") %}
with input as (
  select
    {{ column.user }} as user_id,
    {{ column.item }} as item_id,
    {{ column.rating }} as given_rating,
    try_cast({{ column.rating }} as double) as rating,
    {% if column.time -%}
    {{ kgather.as_timestamp(input, column.time) if execute }}
    {%- else -%}
    cast(null as timestamp)
    {%- endif %} as rated_at,
    {{ column.source or "'" ~ kgather.setting("ratings") ~ "'" }} as source,
    {{ column.line or "row_number() over ()" }} as line,
    {{ column.raw or "cast(null as varchar)" }} as raw,
    {{ column.problem or "cast(null as varchar)" }} as problem
  from {{ input }}
)
select
  user_id,
  item_id,
  rating,
  rated_at,
  source,
  line,
  -- What stands for the row where it is set aside: the macro text_of_row. Of most rows nobody asks.
  raw,
  given_rating,
  case
    -- Most rows are fine: one condition says so, and the reasons are only asked of the others.
    when problem is null
      and not ({{ kgather.is_empty_id(input, column.user, "user_id") if execute }})
      and not ({{ kgather.is_empty_id(input, column.item, "item_id") if execute }})
      and isfinite(rating)
      {% if kgather.setting("items") -%}
      and item_id in (from {{ ref("stg_kgather__items") }})
      {% endif -%}
      {% if kgather.setting("not_rated") is not none -%}
      and rating <> {{ kgather.setting("not_rated") }}
      {% endif -%}
      {% if kgather.setting("rating_log") -%}
      and rating >= 0
      {% endif -%}
      {% if scale -%}
      and rating between {{ scale[0] }} and {{ scale[1] }}
      {% if scale | length > 2 -%}
      and abs((rating - {{ scale[0] }}) / {{ scale[2] }} - round((rating - {{ scale[0] }}) / {{ scale[2] }})) <= 1e-6
      {% endif -%}
      {% endif -%}
      then null
    when problem is not null then problem
    when {{ kgather.is_empty_id(input, column.user, "user_id") if execute }} then 'user id is empty'
    when {{ kgather.is_empty_id(input, column.item, "item_id") if execute }} then 'item id is empty'
    {% if kgather.setting("items") -%}
    when item_id not in (from {{ ref("stg_kgather__items") }}) then 'item is not in the catalogue'
    {% endif -%}
    when given_rating is null then 'rating is empty'
    when rating is null then 'rating is not a number'
    when not isfinite(rating) then 'rating is not a finite number'
    {% if kgather.setting("not_rated") is not none -%}
    when rating = {{ kgather.setting("not_rated") }} then 'not rated'
    {% endif -%}
    {% if kgather.setting("rating_log") -%}
    when rating < 0 then 'rating is negative, and has no logarithm'
    {% endif -%}
    {% if scale -%}
    when rating not between {{ scale[0] }} and {{ scale[1] }} then 'rating is off the scale'
    {% if scale | length > 2 -%}
    when abs((rating - {{ scale[0] }}) / {{ scale[2] }} - round((rating - {{ scale[0] }}) / {{ scale[2] }})) > 1e-6
      then 'rating is between two steps of the scale'
    {% endif -%}
    {% endif %}
  end as reason
from input
