{{ config(enabled=kgather.shows_rated_cells()) }}
-- The items that some member of a group rated, with the members' mean, how many they are and, where cells are padded,
-- by how much their ratings differ from their predictions.
{% for slice in kgather.group_slices() -%}
{% if not loop.first %}union all{% endif %}
(
  select *
  from
    {% if kgather.pads_rated_cells() -%}
    kg_rated_cells(
      '{{ kgather.padding_ratings() }}', '{{ ref("int_kgather__groups") }}',
      '{{ ref("int_kgather__preferences") }}', '{{ ref("int_kgather__item_factors") }}'
    )
    {%- else -%}
    kg_pure('{{ ref("stg_kgather__ratings") }}', '{{ ref("int_kgather__groups") }}', p_one_per_pair := true)
    {%- endif %}
  where {{ slice }}
)
{% endfor %}
