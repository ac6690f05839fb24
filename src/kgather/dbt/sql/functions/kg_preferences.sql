/*
Learn users' preferences from their ratings. p_ratings is a list of structs with user_id, item_id and rating, one for
each pair of user and item; gives a list of (user_id, preference), to be unnested. With p_metric 'prediction' the
distance of two preferences is the root mean square difference of the users' predicted ratings; with 'preference'
they are the factors alone.
  select unnest(kg_preferences(list(r)), recursive := true) from ratings as r
*/
create or replace macro kg_preferences(
  p_ratings, p_rank := 3, p_solver := 'als', p_metric := 'prediction', p_seed := 0
) as
  list_transform(
    list_filter(
      list_zip(
        p_ratings,
        kg_preference_vectors(
          list_transform(
            p_ratings,
            lambda kg_row: {
              'user_id': cast(kg_row.user_id as varchar),
              'item_id': cast(kg_row.item_id as varchar),
              'rating': cast(kg_row.rating as double)
            }
          ),
          p_rank, p_solver, p_metric, p_seed
        )
      ),
      -- The preference stands beside the first rating of its user.
      lambda kg_pair: kg_pair[2] is not null
    ),
    lambda kg_pair: {'user_id': kg_pair[1].user_id, 'preference': kg_pair[2]}
  );
