{#- The condition that a column of item ids names none of the sensitive items. -#}
{% macro is_not_sensitive(column) -%}
  cast({{ column }} as varchar) not in (
    {%- for item in kgather.setting('sensitive_items') -%}
    '{{ item | string | replace("'", "''") }}'{{ ", " if not loop.last }}
    {%- endfor -%}
  )
{%- endmacro %}
