-- {% macro ddl__kg_average_class_size() %}
/*
Average class size C_AVG (Riyana and Natwichai 2018, equation 2): n / (number of classes * k), 1 where all classes have
k users. p_members(group_id): name of a relation with one row for each user and the number of the class. Gives one row
(average_class_size), null where there are no users.
*/
create or replace macro kg_average_class_size(p_members, p_k) as table
  with kg_k as (
    select
      case
        when p_k >= 1 then cast(p_k as double)
        else error('kg_average_class_size: p_k is a number of at least 1, not ' || coalesce(cast(p_k as varchar), 'null'))
      end as k
  ),
  kg_classes as (
    select count(*) as class_size
    from query_table(p_members)
    group by group_id
  )
  select avg(kg_classes.class_size) / any_value(kg_k.k) as average_class_size
  from kg_k
  left join kg_classes on true;
-- {% endmacro %}
