-- {% macro ddl__kg_l_diversity() %}
/*
How diverse sensitive columns are in each equivalence class: the largest l for which a class is l-diverse. p_kind is
'distinct' (how many values there are), 'entropy' (exp of their entropy) or 'recursive' (the largest l with
r_1 < p_c * (r_l + ... + r_m), r_1 >= r_2 >= ... being how often the values occur; 0 where there is none).
p_relation: name of a relation, p_quasi_identifiers and p_sensitive: lists of column names, null a value like any other.
Gives (sensitive_column, class_size, l, classes): how many classes of a size have that l, rounded to 9 digits.
*/
create or replace macro kg_l_diversity(
  p_relation, p_quasi_identifiers, p_sensitive, p_kind := 'distinct', p_c := null
) as table
  select sensitive_column, class_size, l, count(*) as classes
  from kg_class_l(p_relation, p_quasi_identifiers, p_sensitive, p_kind := p_kind, p_c := p_c, p_for := 'kg_l_diversity')
  group by all
  order by all asc;
-- {% endmacro %}
