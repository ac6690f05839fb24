{#- The form interval: ratings moved into their groups' windows; those of sensitive items as they are. -#}
{% macro form__interval() -%}
  select user_id, item_id, rating
  from kg_clip_to_intervals(
    {{ kgather.named(kgather.ref_to("int_kgather__interval_ratings")) }}, {{ kgather.named(kgather.ref_to("int_kgather__groups")) }},
    {{ kgather.named(kgather.ref_to("int_kgather__intervals")) }}
  )
  {% if kgather.setting("sensitive_items") -%}
  union all
  select user_id, item_id, rating
  from {{ kgather.ref_to("stg_kgather__ratings") }}
  where not {{ kgather.is_not_sensitive("item_id") }}
  {%- endif %}
{%- endmacro %}

{#- Checks of its own, as rows of the audit. -#}
{% macro form__interval__checks() %}
  union all
  select
    16,
    '(k, epsilon)-anonymity: users in the smallest group, within epsilon of each other on every item',
    {{ "null" if kgather.users_may_stand_alone() else kgather.setting("k") }},
    'at least',
    (select min(members) from class_sizes)

  union all
  select
    17,
    'groups and items whose members are farther apart than epsilon, or of whom some have no rating',
    0,
    'exactly',
    (
      select count(*)
      from (
        select members.group_id
        from {{ kgather.ref_to("kgather__user_ratings") }} as ratings
        join {{ kgather.ref_to("kgather__members") }} as members using (pseudonym)
        join class_sizes on class_sizes.group_id = members.group_id
        {% if kgather.setting("sensitive_items") -%}
        where {{ kgather.is_not_sensitive("ratings.item_id") }}
        {%- endif %}
        group by members.group_id, ratings.item_id
        having max(ratings.rating) - min(ratings.rating) > {{ kgather.setting("epsilon") }} + 1e-9
          or count(*) <> any_value(class_sizes.members)
      )
    )
{% endmacro %}
