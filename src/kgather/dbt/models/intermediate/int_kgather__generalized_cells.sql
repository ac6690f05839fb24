{{ config(enabled=kgather.publishes() and kgather.generalize() != "none") }}
-- The artifact table's classes in the long shape: what a group's members are shown to have rated an artifact.
{% if kgather.generalize() == "dgh" -%}
from kg_generalize_ranges(
  {{ kgather.named(ref("int_kgather__artifact_ratings")) }}, {{ kgather.named(ref("int_kgather__groups")) }}, {{ kgather.named(ref("int_kgather__hierarchy")) }}
)
{%- else -%}
from kg_generalize_sets({{ kgather.named(ref("int_kgather__artifact_ratings")) }}, {{ kgather.named(ref("int_kgather__groups")) }})
{%- endif %}
