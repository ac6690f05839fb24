{#- The macros of homogenization, called on the pipeline's own relations for the cells asked for. -#}

{% macro predicted_cells(cells) -%}
  kg_predicted(
    {{ kgather.named(cells) }}, {{ kgather.named(kgather.ref_to("int_kgather__group_vectors")) }}, {{ kgather.named(kgather.ref_to("int_kgather__item_factors")) }},
    {{ kgather.scale_end("min") }}, {{ kgather.scale_end("max") }}
  )
{%- endmacro %}

{% macro padded_cells(cells) -%}
  kg_padded(
    {{ kgather.named(cells) }}, {{ kgather.named(kgather.padding_ratings()) }}, {{ kgather.named(kgather.ref_to("int_kgather__groups")) }},
    {{ kgather.named(kgather.ref_to("int_kgather__preferences")) }}, {{ kgather.named(kgather.ref_to("int_kgather__group_vectors")) }},
    {{ kgather.named(kgather.ref_to("int_kgather__item_factors")) }}, {{ kgather.scale_end("min") }}, {{ kgather.scale_end("max") }}
  )
{%- endmacro %}

{#- An end of the scale: min or max. -#}
{% macro scale_end(end) -%}
  (select scale_{{ end }} from {{ kgather.ref_to("int_kgather__scale") }})
{%- endmacro %}

{#- What stands for a rating that is not there, where fill is median or mean: the middle of the scale, or the mean of
    all ratings. -#}
{% macro filling() -%}
  {% if kgather.setting("fill") == "mean" -%}
  (select avg(rating) from {{ kgather.ref_to("stg_kgather__ratings") }})
  {%- else -%}
  (select (scale_min + scale_max) / 2 from {{ kgather.ref_to("int_kgather__scale") }})
  {%- endif %}
{%- endmacro %}

{#- What the form itself says to a question, by the macro `form__<name>__<question>`; false where it has none. -#}
{% macro form_hook(question) %}
  {% set answer = kgather.get("form__" ~ kgather.homogenize() ~ "__" ~ question) %}
  {{ return(answer() if answer else false) }}
{% endmacro %}

{#- The form's own rows of the audit. -#}
{% macro form_checks() -%}
  {% set checks = kgather.get("form__" ~ kgather.homogenize() ~ "__checks") -%}
  {{ checks() if checks }}
{%- endmacro %}

{#- Whether cells that members rated are shown padded: all of them, or those with one rater. -#}
{% macro pads_rated_cells() %}{{ return(kgather.form_hook("pads")) }}{% endmacro %}

{#- Whether the release shows what members rated, and nothing else. -#}
{% macro shows_rated_cells() %}
  {{ return(
    kgather.setting("cells") == "rated"
    or (kgather.has_cells() and kgather.form_facts(kgather.homogenize()).bounded)
  ) }}
{% endmacro %}

{#- The cells of int_kgather__rated_cells that are shown, from which they are selected. -#}
{% macro shown_rated_cells() -%}
  {% set top_items = kgather.top_items() | trim -%}
  {{ kgather.ref_to("int_kgather__rated_cells") }} as cells
  {% if top_items %}semi join {{ kgather.ref_to("int_kgather__shown_items") }} as items on cells.item_id = items.item_id{% endif %}
  {% if kgather.form_facts(kgather.homogenize()).bounded and kgather.setting("single_rater") == "drop" -%}
  where cells.raters > 1
  {%- endif %}
{%- endmacro %}

{#- The shown cells that members rated, padded, or with `only_single_raters` where the mean is one person's rating. -#}
{% macro padded_rated_cells(only_single_raters=false) -%}
  select
    cells.group_id,
    cells.item_id,
    {% if only_single_raters %}case when cells.raters > 1 then cells.rating else {% endif -%}
    kg_padded_cell(
      kg_cell(
        groups.level, groups.factor, factors.level, factors.factor, '-infinity'::double, 'infinity'::double
      ),
      cells.surprise, sizes.group_size, {{ kgather.scale_end("min") }}, {{ kgather.scale_end("max") }}
    )
    {%- if only_single_raters %} end{% endif %} as rating
  from (select cells.* from {{ kgather.shown_rated_cells() }}) as cells
  join {{ kgather.ref_to("int_kgather__group_vectors") }} as groups on groups.group_id = cells.group_id
  join {{ kgather.ref_to("int_kgather__item_factors") }} as factors on factors.item_id = cells.item_id
  join (
    select group_id, count(*) as group_size
    from {{ kgather.ref_to("int_kgather__groups") }}
    group by group_id
  ) as sizes on sizes.group_id = cells.group_id
{%- endmacro %}
