{#-
Asserts that every user of a table of ratings has at least k neighbours, oneself included, by the items that are not
sensitive, and that among the neighbours of each user the ratings of every sensitive item have a standard deviation of
at least l ((k, epsilon, l)-anonymity).

  data_tests:
    - kgather.k_epsilon_l_anonymous:
        arguments: {k: 10, epsilon: 1, l: 0.5, sensitive_items: [1042, 1043]}

sensitive_items: ids of items, which are rows of the same table. Rows, width, nulls and columns as in
k_epsilon_anonymous. A null rating of a sensitive item tells nothing and is left out; neighbours of whom nobody has
rated it pass. An empty relation passes. Failures are numbers of neighbours and how many users have so many, and the
smallest deviation: never users, never ratings. Needs kgather's plugin in the profile.
-#}
{% test k_epsilon_l_anonymous(
  model, k, epsilon, l, sensitive_items, width=none, user_column="user_id", item_column="item_id", rating_column="rating",
  measure='people'
) %}
  {{- kgather.count_failures('k_epsilon_l_anonymous', measure, ['people']) }}
  {{- kgather.check_number("k_epsilon_l_anonymous", "k", k, 1) }}
  {{- kgather.check_number("k_epsilon_l_anonymous", "epsilon", epsilon, 0, whole=false) }}
  {{- kgather.check_number("k_epsilon_l_anonymous", "l", l, 0, whole=false) }}
  {%- if width is not none %}{{ kgather.check_number("k_epsilon_l_anonymous", "width", width, 0, whole=false, above=true) }}{% endif %}
  {{- kgather.check_plugin("k_epsilon_l_anonymous") }}
  {%- set items = kgather.names_as_literals("k_epsilon_l_anonymous", "sensitive_items", sensitive_items) %}
  with kg_rated as (
    select {{ kgather.rating_list("k_epsilon_l_anonymous", user_column, item_column, rating_column) }} as ratings
    from {{ model }}
  ),
  kg_counts as (
    select unnest(
      kg_epsilon_neighbours(ratings, {{ epsilon }}, {{ k }}, {{ "null" if width is none else width }}, p_sensitive := {{ items }}),
      recursive := true
    )
    from kg_rated
  ),
  kg_deviations as (
    select kg_epsilon_deviation(ratings, {{ items }}, {{ epsilon }}, {{ "null" if width is none else width }}) as least_deviation
    from kg_rated
  ),
  kg_failing as (
    select neighbours, users, cast(null as double) as least_deviation
    from kg_counts
    where neighbours < {{ k }}
    union all
    select null, null, least_deviation
    from kg_deviations
    where least_deviation < {{ l }}
  )
  select
    *,
    -- Whose neighbours deviate too little is not told: it may be all.
    cast(
      case
        when count(least_deviation) over () > 0 then (select sum(users) from kg_counts)
        else sum(users) over ()
      end
      as bigint
    ) as people_at_risk
  from kg_failing
{% endtest %}
