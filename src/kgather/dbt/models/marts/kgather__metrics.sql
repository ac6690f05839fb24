{{ config(enabled=kgather.publishes()) }}
{% set cells = kgather.has_cells() -%}
{% set low_rank = kgather.is_low_rank() -%}
{% set by_user = kgather.has_rows_of_users() -%}
{% set generalize = kgather.generalize() -%}
{% set ratings = ref("stg_kgather__ratings") -%}
{% set groups = ref("int_kgather__groups") -%}
{% set scale = ref("int_kgather__scale") -%}
{% set wanted = kgather.metrics_wanted(ref("int_kgather__checked_input")) -%}
{% set shown = ref("kgather__ratings") if cells else ref("kgather__user_ratings") if by_user else none -%}
{% set vectors = (ref("kgather__group_vectors"), ref("kgather__item_vectors")) if low_rank -%}
{% set generalized = ref("kgather__generalized") if generalize != "none" -%}
{% set generalized_cells = ref("int_kgather__generalized_cells") if generalize != "none" -%}
{% set artifacts = ref("int_kgather__artifact_items") if generalize != "none" -%}
{% set members = ref("kgather__members") -%}
{% set users = ref("int_kgather__users") -%}
{% set gathered = ref("int_kgather__gathered") -%}
-- What utility was paid. All values are about all users at once; they are rounded, because an exact sum over all
-- ratings gives away the one that somebody does not know who knows the others.
with
{% if generalized -%}
classes as (
  -- Groups that show the same of every artifact are one class.
  select
    dense_rank() over (
      order by
        {%- for artifact in kgather.artifact_ids(artifacts) %}
        {{ kgather.quoted_name(artifact) }} asc{{ "," if not loop.last }}
        {%- else %}
        group_id asc
        {%- endfor %}
    ) as group_id
  from {{ generalized }}
),

bounds as (
  {% if generalize == "ndgh" -%}
  select group_id, item_id, list_min("values") as low, list_max("values") as high
  {%- else -%}
  select group_id, item_id, "range".low as low, "range".high as high
  {%- endif %}
  from {{ generalized_cells }}
),
{%- elif cells %}
classes as (
  select group_id from {{ members }}
),
{%- endif %}
{% if wanted == "all" -%}
{% if by_user %}
-- Every user is a group of one.
groups as (
  select users.user_id, gathered.pseudonym as group_id
  from {{ gathered }} as gathered
  join {{ users }} as users using (user_code)
),

cells as (
  select pseudonym as group_id, item_id, rating
  from {{ shown }}
),
{% elif low_rank %}
groups as (
  select user_id, group_id from {{ groups }}
),

rated_pairs as (
  select distinct members.group_id, ratings.item_id
  from {{ ratings }} as ratings
  join {{ groups }} as members using (user_id)
),

-- Only the cells that are looked at are computed.
cells as (
  select group_id, item_id, rating
  from kg_predicted(
    'rated_pairs', {{ kgather.named(vectors[0]) }}, {{ kgather.named(vectors[1]) }}, {{ kgather.scale_end("min") }}, {{ kgather.scale_end("max") }}
  )
),
{% elif cells %}
groups as (
  select user_id, group_id from {{ groups }}
),

cells as (
  select group_id, item_id, rating from {{ shown }}
),
{% else %}
groups as (
  select user_id, group_id from {{ groups }}
),

cells as (
  -- Of a set or range the middle of what those who rated can have given, which is not 0.
  {% if generalize == "ndgh" -%}
  select
    group_id,
    item_id,
    (list_min(list_filter("values", lambda v: v <> 0)) + list_max(list_filter("values", lambda v: v <> 0))) / 2 as rating
  from {{ generalized_cells }}
  where len(list_filter("values", lambda v: v <> 0)) > 0
  {%- else -%}
  select group_id, item_id, ("range".low + "range".high) / 2 as rating
  from {{ generalized_cells }}
  {%- endif %}
),
{% endif %}
{%- endif %}

found as (
  select cast(null as varchar) as metric, cast(null as double) as value
  {% if wanted != "none" and (generalized or cells) -%}
  union all
  select 'discernibility', discernibility from kg_discernibility('classes')
  union all
  select 'average_class_size', average_class_size from kg_average_class_size('classes', {{ kgather.setting("k") }})
  {%- endif %}
  {% if wanted != "none" and generalized -%}
  union all
  select 'generalized_information_loss', generalized_information_loss
  from kg_generalized_information_loss(
    'bounds', {{ kgather.named(generalized) }}, {{ kgather.named(artifacts) }},
    (select greatest(scale_max, 0) - least(scale_min, 0) from {{ scale }})
  )
  {%- endif %}
  {% if wanted == "all" -%}
  union all
  from (
    unpivot (
      select mean_absolute_error, root_mean_square_error, sum_of_squares
      from kg_shown_errors({{ kgather.named(ratings) }}, 'groups', 'cells')
    ) on columns(*) into name metric value value
  )
  {%- if low_rank %}
  union all
  -- The vectors show every cell: nothing has to be counted one by one.
  from (
    unpivot (
      select
        1.0::double as items_shown,
        count(*) / (select count(*) from {{ ratings }}) as ratings_shown,
        1.0::double as cells_shown,
        (
          (select count(distinct group_id) from groups) * (select count(*) from {{ vectors[1] }})
        )::double as entries_of_groups,
        ((select count(*) from groups) * (select count(*) from {{ vectors[1] }}))::double as entries_repeated,
        ((select count(*) from groups) * (select count(*) from {{ vectors[1] }}) - count(*))::double as entries_added,
        (
          (select count(distinct group_id) from groups) * (select count(*) from {{ vectors[1] }})
          - (select count(*) from rated_pairs)
        )::double as cells_added
      from {{ ratings }}
      semi join groups using (user_id)
    ) on columns(*) into name metric value value
  )
  {%- else %}
  union all
  from (
    unpivot (
      select items_shown, ratings_shown, cells_shown
      from kg_coverage({{ kgather.named(ratings) }}, 'groups', 'cells')
    ) on columns(*) into name metric value value
  )
  union all
  from (
    unpivot (
      select
        cast(entries_of_groups as double) as entries_of_groups,
        cast(entries_repeated as double) as entries_repeated,
        cast(entries_added as double) as entries_added,
        cast(cells_added as double) as cells_added
      from kg_entries_added({{ kgather.named(ratings) }}, 'groups', 'cells')
    ) on columns(*) into name metric value value
  )
  union all
  from (
    unpivot (
      select means as popularity_of_means, counts as popularity_of_counts
      from kg_popularity_kept({{ kgather.named(ratings) }}, 'groups', 'cells')
    ) on columns(*) into name metric value value
  )
  {%- endif %}
  {%- endif %}
)

select
  cast(metric as varchar) as metric,
  cast(
    case when value = 0 then 0 else round(value, cast(3 - floor(log10(abs(value))) as integer)) end as double
  ) as value,
  {{ kgather.stamp() }}
from found
where value is not null and isfinite(value)
order by metric asc
