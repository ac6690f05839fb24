-- {% macro ddl__kg_expand() %}
/*
One row per pseudonym and item, for recipients who need users: (pseudonym, item_id, rating).
p_members(pseudonym, group_id), p_ratings(group_id, item_id, rating): names of relations.
*/
create or replace macro kg_expand(p_members, p_ratings) as table
  select members.pseudonym, cells.item_id, cells.rating
  from query_table(p_members) as members
  join query_table(p_ratings) as cells using (group_id);
-- {% endmacro %}
