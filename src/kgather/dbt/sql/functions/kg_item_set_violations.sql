/*
The sets of up to p_m items that some user has rated but fewer than p_k users have: a list of (set_size, least_support,
failing_sets). It is empty if there are none, else it tells of the smallest size at which there are some: larger ones
fail too. Ratings as in kg_item_set_support.
  select unnest(kg_item_set_violations(list(r), 2, 5), recursive := true) from ratings as r
*/
create or replace macro kg_item_set_violations(p_ratings, p_m, p_k, p_max_sets := 2000000000) as
  kg_item_set_failures(
    list_transform(
      p_ratings,
      lambda kg_row: {
        'user_id': cast(kg_row.user_id as varchar),
        'item_id': cast(kg_row.item_id as varchar),
        'rating': cast(kg_row.rating as double)
      }
    ),
    p_m, p_k, p_max_sets
  );
