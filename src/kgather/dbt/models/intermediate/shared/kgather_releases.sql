{% set releases = kgather.releases() -%}
{% set written = [] -%}
{#- A package that is missing is refused when the run starts, in a sentence. -#}
{% for name in releases if context.get("kgather_" ~ name) %}{% do written.append(name) %}{% endfor -%}
{{ config(enabled=written | length > 1) }}
-- What the releases of this project give away together: one row for each pair of them. Whoever has both looks among those
-- who share a person's groups in both. Releases that are within the same one keep its k; others promise nothing together.
with pairs as (
  {%- set found = namespace(any=false) -%}
  {% for one in written -%}
  {% for other in written[loop.index:] %}
  {% if found.any %}union all{% endif %}
  {%- set found.any = true %}
  select
    '{{ one }}' as release,
    '{{ other }}' as beside,
    {% if kgather.origin_of(one) == kgather.origin_of(other) -%}
    {{ kgather.setting_of(kgather.origin_of(one), "k") }}
    {%- else -%}
    null
    {%- endif %} as promised,
    (
      select min(people)
      from (
        select count(*) as people
        from {{ ref("int_kgather_" ~ one ~ "__groups") }} as one
        join {{ ref("int_kgather_" ~ other ~ "__groups") }} as other
          on cast(one.user_id as varchar) = cast(other.user_id as varchar)
        group by one.group_id, other.group_id
      )
    ) as measured
  {%- endfor %}
  {%- endfor %}
)

select
  cast(release as varchar) as release,
  cast(beside as varchar) as beside,
  'people in the smallest set that a group of each release has in common' as "check",
  cast(promised as bigint) as promised,
  cast(measured as bigint) as measured,
  -- Nobody is in both where nothing is measured.
  cast(coalesce(measured >= promised, true) as boolean) as passed
from pairs
