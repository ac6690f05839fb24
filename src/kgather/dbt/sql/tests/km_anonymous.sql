{#-
Asserts that every set of up to m items that some user has rated was rated by at least k users (k^m-anonymity), whatever
the ratings.

  data_tests:
    - kgather.km_anonymous:
        arguments: {k: 5, m: 2}
    - kgather.km_anonymous:
        arguments: {k: 5, m: 2, user_column: customer, item_column: product, rating_column: null}

m is 1, 2 or 3. One row is one rating; a pair of user and item may occur once. A null rating is an item not rated;
without a rating_column (null) every row counts. A null user or item is refused. An empty relation passes. The failure
is the smallest size of sets of which some fail, the smallest number of users who have one, and how many fail: never
users, never items. More than max_sets sets are refused: so many take ten seconds. Needs kgather's plugin in the
profile.
-#}
{% test km_anonymous(
  model, k, m, user_column="user_id", item_column="item_id", rating_column="rating", max_sets=2000000000,
  measure='people'
) %}
  {{- kgather.count_failures('km_anonymous', measure, ['people', 'sets']) }}
  {{- kgather.check_number("km_anonymous", "k", k, 1) }}
  {{- kgather.check_number("km_anonymous", "m", m, 1, 3) }}
  {{- kgather.check_number("km_anonymous", "max_sets", max_sets, 1) }}
  {{- kgather.check_plugin("km_anonymous") }}
  with kg_rated as (
    select
      {{ kgather.rating_list("km_anonymous", user_column, item_column, rating_column) }} as ratings,
      count(distinct {{ kgather.named_column("km_anonymous", "user_column", user_column) }}) as users
    from {{ model }}
  ),
  kg_sets as (
    select
      users,
      unnest(kg_item_set_violations(ratings, {{ m }}, {{ k }}, p_max_sets := {{ max_sets }}), recursive := true)
    from kg_rated
  )
  select
    set_size,
    least_support,
    failing_sets,
    -- At most: who has several of these sets counts for each.
    cast(least(users, failing_sets * ({{ k }} - 1)) as bigint) as people_at_risk,
    failing_sets as sets_at_risk
  from kg_sets
{% endtest %}
