/*
Gather users into groups of at least p_k: p_method is 'bkg' (Bisecting K-Gather), 'mdav' or 'bounded_t_means'; p_refine
lowers the loss of what it finds. p_users is a list of structs with user_id and
preference (numbers), one for each user; gives a list of (user_id, group_id), to be unnested:
  select unnest(kg_gather(list(p), 10), recursive := true) from preferences as p
The numbering of the groups is random and tells nothing.
*/
create or replace macro kg_gather(p_users, p_k, p_method := 'bkg', p_refine := true, p_tries := 10, p_seed := 0) as
  list_transform(
    list_zip(
      p_users,
      kg_gather_vectors(
        list_transform(
          p_users,
          lambda kg_row: {'user_id': cast(kg_row.user_id as varchar), 'preference': cast(kg_row.preference as float[])}
        ),
        p_k, p_method, p_refine, p_tries, p_seed
      )
    ),
    lambda kg_pair: {'user_id': kg_pair[1].user_id, 'group_id': kg_pair[2]}
  );
