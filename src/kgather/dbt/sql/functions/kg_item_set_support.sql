/*
The smallest number of users who have rated a set of up to p_m items that some user has rated (k^m-anonymity): p_m is 1,
2 or 3. p_ratings is a list of structs with user_id, item_id and rating, one for each pair; a null rating is an item
not rated. Refuses more than p_max_sets sets.
  select kg_item_set_support(list(r), 2) from ratings as r
*/
create or replace macro kg_item_set_support(p_ratings, p_m, p_max_sets := 2000000000) as
  kg_item_set_least_support(
    list_transform(
      p_ratings,
      lambda kg_row: {
        'user_id': cast(kg_row.user_id as varchar),
        'item_id': cast(kg_row.item_id as varchar),
        'rating': cast(kg_row.rating as double)
      }
    ),
    p_m, p_max_sets
  );
