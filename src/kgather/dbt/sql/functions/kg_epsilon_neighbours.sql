/*
How many users have how many neighbours: users who differ from them by at most p_epsilon on every item, oneself
included, counted up to p_k. p_ratings is a list of structs with user_id, item_id and rating, one for each pair; a null
rating is an item not rated. Rated and not rated are p_width apart; null stands for the highest rating there is, as in
the paper. p_sensitive: ids of items that do not count. Gives a list of (neighbours, users): who has fewer than p_k is
not (p_k, p_epsilon)-anonymous.
  select unnest(kg_epsilon_neighbours(list(r), 1, 10, null), recursive := true) from ratings as r
*/
create or replace macro kg_epsilon_neighbours(p_ratings, p_epsilon, p_k, p_width, p_sensitive := []) as
  kg_epsilon_neighbour_counts(
    list_transform(
      p_ratings,
      lambda kg_row: {
        'user_id': cast(kg_row.user_id as varchar),
        'item_id': cast(kg_row.item_id as varchar),
        'rating': cast(kg_row.rating as double)
      }
    ),
    p_epsilon, p_k,
    coalesce(p_width, list_max(list_transform(p_ratings, lambda kg_row: cast(kg_row.rating as double))), 1),
    cast(p_sensitive as varchar[])
  );
