{#- The form pure: the mean over the members who rated the item; where that is one, what single_rater says. -#}
{% macro form__pure() -%}
  {% if kgather.pads_rated_cells() -%}
  {{ kgather.padded_rated_cells(only_single_raters=true) }}
  {%- else -%}
  select cells.group_id, cells.item_id, cells.rating
  from {{ kgather.shown_rated_cells() }}
  {%- endif %}
{%- endmacro %}

{% macro form__pure__pads() %}{{ return(kgather.setting("single_rater") == "pad") }}{% endmacro %}

{#- Cells that are added for the diversity of items: nobody rated them, so they are padded with predictions. -#}
{% macro form__pure__added() -%}
  {{ kgather.form__padded__added() }}
{%- endmacro %}

{#- Checks of its own, as rows of the audit. -#}
{% macro form__pure__checks() %}
  union all
  select
    9,
    'cells that show the exact rating of their only rater',
    {{ 0 if kgather.setting("single_rater") == "drop" else "null" }},
    'exactly',
    (
      select sum(shown)
      from (
        {% for slice in kgather.group_slices() -%}
        {% if not loop.first %}union all{% endif %}
        select count(*) as shown
        from {{ kgather.ref_to("kgather__ratings") }} as released
        join {{ kgather.ref_to("int_kgather__rated_cells") }} as rated using (group_id, item_id)
        where {{ slice }} and rated.raters = 1 and released.rating = rated.rating
        {% endfor %}
      )
    )
{% endmacro %}

{#- Whether a group may have no cell at all. -#}
{% macro form__pure__may_be_empty() %}
  {{ return(kgather.setting("single_rater") == "drop" or kgather.top_items() | trim | length > 0) }}
{% endmacro %}
