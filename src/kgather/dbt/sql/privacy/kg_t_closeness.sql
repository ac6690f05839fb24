-- {% macro ddl__kg_t_closeness() %}
/*
How far the distribution of sensitive columns in each equivalence class is from that in the whole relation: the least
t for which a class is t-close. The distance is the earth mover's. p_ordered true: values lie on a line, in the order of
their ranks, those next to each other being 1 / (m - 1) apart (m: how many distinct values there are); false: all values
are 1 apart, and the distance is the total variation; null: true for columns of numbers, dates and times, false for
others. p_relation: name of a relation, p_quasi_identifiers and p_sensitive: lists of column names. Null is a value like
any other, the last in the order. Gives (sensitive_column, class_size, t, classes): how many classes of a size are at
that distance, 0 to 1, rounded to 9 digits.
*/
create or replace macro kg_t_closeness(p_relation, p_quasi_identifiers, p_sensitive, p_ordered := null) as table
  select sensitive_column, class_size, t, count(*) as classes
  from kg_class_t(p_relation, p_quasi_identifiers, p_sensitive, p_ordered := p_ordered, p_for := 'kg_t_closeness')
  group by all
  order by all asc;
-- {% endmacro %}
