{{ config(enabled=kgather.generalize() != "none") }}
-- The artifact table's classes in the long shape: what a group's members are shown to have rated an artifact.
{% if kgather.generalize() == "dgh" -%}
from kg_generalize_ranges(
  '{{ ref("int_kgather__artifact_ratings") }}', '{{ ref("int_kgather__groups") }}', '{{ ref("int_kgather__hierarchy") }}'
)
{%- else -%}
from kg_generalize_sets('{{ ref("int_kgather__artifact_ratings") }}', '{{ ref("int_kgather__groups") }}')
{%- endif %}
