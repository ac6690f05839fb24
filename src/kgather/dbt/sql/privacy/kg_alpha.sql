-- {% macro ddl__kg_alpha() %}
/*
How much of an equivalence class its most frequent sensitive value takes: the least alpha for which every class is
(alpha, k)-anonymous. p_relation: name of a relation, p_quasi_identifiers and p_sensitive: lists of column names, null
a value like any other. Gives (sensitive_column, class_size, alpha, classes): how many classes of a size have that
share, 0 to 1, rounded to 9 digits.
*/
create or replace macro kg_alpha(p_relation, p_quasi_identifiers, p_sensitive) as table
  select sensitive_column, class_size, alpha, count(*) as classes
  from kg_class_alpha(p_relation, p_quasi_identifiers, p_sensitive, p_for := 'kg_alpha')
  group by all
  order by all asc;
-- {% endmacro %}
