-- {% macro ddl__kg_best() %}
/*
The p_best items that are predicted highest for each group, (group_id, item_id); of equal ones those with smaller ids.
Which items the members have rated, and how many rated an item, does not enter.
p_group_vectors(group_id, level, factor), p_item_factors(item_id, level, factor): names of relations.
*/
create or replace macro kg_best(p_group_vectors, p_item_factors, p_best) as table
  select group_id, item_id
  from (
    select
      groups.group_id,
      unnest(
        -- The group's own level changes nothing of its order.
        list(items.item_id order by items.level + list_inner_product(groups.factor, items.factor) desc,
          items.item_id)[1:p_best]
      ) as item_id
    from query_table(p_group_vectors) as groups
    cross join query_table(p_item_factors) as items
    group by groups.group_id
  );
-- {% endmacro %}
