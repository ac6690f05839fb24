{#-
Asserts that every user of a table of ratings has at least k neighbours, oneself included: users who differ by at most
epsilon on every item ((k, epsilon)-anonymity).

  data_tests:
    - kgather.k_epsilon_anonymous:
        arguments: {k: 10, epsilon: 1}
    - kgather.k_epsilon_anonymous:
        arguments: {k: 10, epsilon: 1, user_column: customer, item_column: product, rating_column: stars}

One row is one rating; a pair of user and item may occur once. width: how far rated is from not rated; not given, the
highest rating there is, as in the paper. From epsilon = width on, only items that both have rated count. A null rating
is an item not rated; a null user or item is refused. An empty relation passes. Failures are numbers of neighbours and
how many users have so many: never users, never ratings. Needs kgather's plugin in the profile.
-#}
{% test k_epsilon_anonymous(
  model, k, epsilon, width=none, user_column="user_id", item_column="item_id", rating_column="rating",
  measure='people'
) %}
  {{- kgather.count_failures('k_epsilon_anonymous', measure, ['people']) }}
  {{- kgather.check_number("k_epsilon_anonymous", "k", k, 1) }}
  {{- kgather.check_number("k_epsilon_anonymous", "epsilon", epsilon, 0, whole=false) }}
  {%- if width is not none %}{{ kgather.check_number("k_epsilon_anonymous", "width", width, 0, whole=false, above=true) }}{% endif %}
  {{- kgather.check_plugin("k_epsilon_anonymous") }}
  with kg_counts as (
    select unnest(
      kg_epsilon_neighbours(
        {{ kgather.rating_list("k_epsilon_anonymous", user_column, item_column, rating_column) }},
        {{ epsilon }}, {{ k }}, {{ "null" if width is none else width }}
      ),
      recursive := true
    )
    from {{ model }}
  )
  select neighbours, users, cast(sum(users) over () as bigint) as people_at_risk
  from kg_counts
  where neighbours < {{ k }}
{% endtest %}
