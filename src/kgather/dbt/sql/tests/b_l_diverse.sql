{#-
Asserts that every set of up to b items is shown by at least l groups ((b, l)-diversity): of the sets that some user of
`ratings` rated or, without it, of those that some group shows.

  data_tests:
    - kgather.b_l_diverse:
        arguments: {b: 2, l: 3}
    - kgather.b_l_diverse:
        arguments: {b: 1, l: 3, group_column: cluster, ratings: ref('ratings')}

b is 1, 2 or 3. A row of the relation is a cell: a group shows an item, once or several times. `ratings` has
user_column, the same item_column and rating_column, one row for each pair of user and item; a null rating is an item
not rated. Null groups, items or users are refused. A relation without cells passes, but not where `ratings` has some;
without ratings all pass. The failure is the smallest number of groups: never groups, never items. Needs kgather's
plugin in the profile. More than max_sets sets are refused: so many take ten seconds.
-#}
{% test b_l_diverse(
  model, b, l, group_column="group_id", item_column="item_id", ratings=none, user_column="user_id",
  rating_column="rating", max_sets=2000000000, measure='people'
) %}
  {{- kgather.count_failures('b_l_diverse', measure, ['people']) }}
  {{- kgather.check_number("b_l_diverse", "b", b, 1, 3) }}
  {{- kgather.check_number("b_l_diverse", "l", l, 1) }}
  {{- kgather.check_number("b_l_diverse", "max_sets", max_sets, 1) }}
  {{- kgather.check_plugin("b_l_diverse") }}
  with kg_cells as (
    select list({
      'group_id': {{ kgather.named_column("b_l_diverse", "group_column", group_column) }},
      'item_id': {{ kgather.named_column("b_l_diverse", "item_column", item_column) }}
    }) as cells
    from {{ model }}
  ){% if ratings is not none %},
  kg_rated as (
    select {{ kgather.rating_list("b_l_diverse", user_column, item_column, rating_column) }} as ratings
    from {{ ratings }}
  ){% endif %},
  kg_coverage as (
    select kg_item_coverage(
      cells, {{ b }}, {% if ratings is not none %}p_ratings := ratings, {% endif %}p_max_sets := {{ max_sets }}
    ) as least_groups
    from kg_cells{{ ", kg_rated" if ratings is not none }}
  )
  select
    least_groups,
    -- Who rated the sets that too few groups show is not told: it may be all. Without ratings nobody is known.
    {% if ratings is none %}cast(1 as bigint){% else %}(
      select greatest(count(distinct {{ kgather.named_column("b_l_diverse", "user_column", user_column) }}), 1)
      from {{ ratings }}
    ){% endif %} as people_at_risk
  from kg_coverage
  where least_groups < {{ l }}
{% endtest %}
