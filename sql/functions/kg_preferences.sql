/*
Learn users' preferences from their ratings. p_ratings is a list of structs with user_id, item_id and rating; gives a
list of (user_id, preference) to be unnested. With p_metric 'prediction' the distance of two preferences is the root
mean square difference of the users' predicted ratings; with 'preference' they are the factors alone.
  select unnest(kg_preferences(list({user_id, item_id, rating})), recursive := true) from ratings
*/
create or replace macro kg_preferences(
  p_ratings, p_rank := 10, p_solver := 'als', p_metric := 'prediction', p_seed := 0
) as
  list_transform(
    kg_preference_vectors(
      list_transform(
        p_ratings,
        lambda r: {
          'user_id': cast(r.user_id as varchar),
          'item_id': cast(r.item_id as varchar),
          'rating': cast(r.rating as double)
        }
      ),
      p_rank, p_solver, p_metric, p_seed
    ),
    lambda learnt: {'user_id': p_ratings[learnt.row].user_id, 'preference': learnt.preference}
  );
