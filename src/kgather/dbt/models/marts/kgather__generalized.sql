{{ config(enabled=kgather.publishes() and kgather.generalize() != "none") }}
{% set artifacts = ref("int_kgather__artifact_items") -%}
{% set personal = kgather.personal_beside() -%}
{% set shown = {"as_is": "stg_kgather__user_attributes", "separate": "int_kgather__shared_personal"} -%}
{% do kgather.check_column_names(personal, kgather.stamp_columns(), "personal column") %}
-- The generalized table: one row a user, every artifact and every personal attribute as its group shows it.
with classes as (
  {{ kgather.generalized_select(
    "ranges" if kgather.generalize() == "dgh" else "sets",
    artifacts,
    ref("int_kgather__generalized_cells"),
    ref("int_kgather__groups"),
    reserved=kgather.setting("personal_columns") + kgather.stamp_columns(),
  ) }}
)

select
  cast(gathered.group_id as bigint) as group_id
  {%- for artifact in kgather.artifact_ids(artifacts) %},
  classes.{{ kgather.quoted_name(artifact) }}
  {%- endfor %}
  {%- for column in personal %},
  attributes.{{ kgather.quoted_name(column) }}
  {%- endfor %},
  {{ kgather.stamp() }}
from {{ ref("int_kgather__gathered") }} as gathered
join classes on classes.group_id = gathered.group_id
{% if personal -%}
join {{ ref("int_kgather__users") }} as users using (user_code)
left join {{ ref(shown.get(kgather.personal(), "int_kgather__personal")) }} as attributes
  on cast(attributes.user_id as varchar) = cast(users.user_id as varchar)
{% endif -%}
-- The order of the pseudonyms is random.
order by gathered.group_id asc, gathered.pseudonym asc
