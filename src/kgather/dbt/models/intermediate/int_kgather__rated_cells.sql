{{ config(enabled=kgather.publishes() and kgather.shows_rated_cells()) }}
-- The items that some member of a group rated, with the members' mean, how many they are and, where cells are padded,
-- by how much their ratings differ from their predictions.
{% for slice in kgather.group_slices() -%}
{% if not loop.first %}union all{% endif %}
(
  select *
  from
    {% if kgather.pads_rated_cells() -%}
    kg_rated_cells(
      {{ kgather.named(kgather.padding_ratings()) }}, {{ kgather.named(ref("int_kgather__groups")) }},
      {{ kgather.named(ref("int_kgather__preferences")) }}, {{ kgather.named(ref("int_kgather__item_factors")) }}
    )
    {%- else -%}
    kg_pure({{ kgather.named(ref("stg_kgather__ratings")) }}, {{ kgather.named(ref("int_kgather__groups")) }}, p_one_per_pair := true)
    {%- endif %}
  where {{ slice }}
)
{% endfor %}
