-- {% macro ddl__kg_class_sizes() %}
/*
The sizes of the equivalence classes: rows that agree in all of p_quasi_identifiers, a list of column names; null is a
value like any other. p_relation: name of a relation. Gives (class_size, classes), one row for each size.
*/
create or replace macro kg_class_sizes(p_relation, p_quasi_identifiers) as table
  select class_size, count(*) as classes
  from query(format(
    'select count(*) as class_size from query_table({0}) group by {1}',
    '''' || replace(p_relation, '''', '''''') || '''',
    array_to_string(kg_as_seen(p_quasi_identifiers, p_for := 'kg_class_sizes'), ', ')
  ))
  group by class_size
  order by class_size asc;
-- {% endmacro %}
