/*
The smallest number of groups that show a set of up to p_b items that some user rated ((b, l)-diversity): p_b is 1, 2 or
3. p_cells is a list of structs with group_id and item_id; p_ratings one of structs with user_id, item_id and rating,
where a null rating is an item not rated. Without p_ratings the sets are those that some group shows. Null if there are
no sets. Refuses more than p_max_sets sets.
  select kg_item_coverage(list(c), 2) from released as c
*/
create or replace macro kg_item_coverage(p_cells, p_b, p_ratings := [], p_max_sets := 2000000000) as
  kg_item_least_coverage(
    list_transform(
      p_cells,
      lambda kg_row: {'group_id': cast(kg_row.group_id as varchar), 'item_id': cast(kg_row.item_id as varchar)}
    ),
    p_b,
    list_transform(
      p_ratings,
      lambda kg_row: {
        'user_id': cast(kg_row.user_id as varchar),
        'item_id': cast(kg_row.item_id as varchar),
        'rating': cast(kg_row.rating as double)
      }
    ),
    p_max_sets
  );
