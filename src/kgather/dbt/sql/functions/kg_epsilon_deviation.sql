/*
The smallest standard deviation of a sensitive item among the neighbours of a user, of all users; null where nobody has
rated any. p_sensitive: the ids of the sensitive items; the others make neighbours, as in kg_epsilon_neighbours,
and so is p_width.
  select kg_epsilon_deviation(list(r), [3, 4], 1, null) from ratings as r
*/
create or replace macro kg_epsilon_deviation(p_ratings, p_sensitive, p_epsilon, p_width) as
  kg_epsilon_least_deviation(
    list_transform(
      p_ratings,
      lambda kg_row: {
        'user_id': cast(kg_row.user_id as varchar),
        'item_id': cast(kg_row.item_id as varchar),
        'rating': cast(kg_row.rating as double)
      }
    ),
    cast(p_sensitive as varchar[]), p_epsilon,
    coalesce(p_width, list_max(list_transform(p_ratings, lambda kg_row: cast(kg_row.rating as double))), 1)
  );
