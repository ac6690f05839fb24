-- {% macro ddl__kg_discernibility() %}
/*
Discernibility metric DM (Riyana and Natwichai 2018, equation 1): the sum over classes of the squared class size. The
less the better; n k where all n users are in classes of k. p_members(group_id): name of a relation with one row for
each user and the number of the class. Gives one row (discernibility).
*/
create or replace macro kg_discernibility(p_members) as table
  select cast(coalesce(sum(class_size * class_size), 0) as double) as discernibility
  from (
    select count(*) as class_size
    from query_table(p_members)
    group by group_id
  );
-- {% endmacro %}
