{{ config(enabled=kgather.publishes() and kgather.personal() == "separate") }}
{% do kgather.check_column_names(kgather.setting("personal_columns"), kgather.stamp_columns(), "personal column") %}
-- Personal attributes in classes of their own, one row a user. Nothing but what they show orders them, and no column
-- says which group a user is in.
select
  {%- for column in kgather.setting("personal_columns") %}
  {{ kgather.quoted_name(column) }}{{ "," if not loop.last }}
  {%- endfor %},
  {{ kgather.stamp() }}
from {{ ref("int_kgather__personal") }}
order by all asc
