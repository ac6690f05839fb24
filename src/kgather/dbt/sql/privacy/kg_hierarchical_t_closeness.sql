-- {% macro ddl__kg_hierarchical_t_closeness() %}
/*
As kg_t_closeness, for one sensitive column whose values lie in a hierarchy: two of them are as far apart as their
lowest common label is high, over the height of the hierarchy (Li, Li and Venkatasubramanian, 2007). p_hierarchy: a list
of lists of texts, for each value the value itself and then its ever wider labels. Where the widest labels differ, there
is one more above them. Null lies right below the highest label. Gives (class_size, t, classes).
*/
create or replace macro kg_hierarchical_t_closeness(p_relation, p_quasi_identifiers, p_sensitive, p_hierarchy) as table
  select class_size, t, count(*) as classes
  from kg_class_hierarchical_t(p_relation, p_quasi_identifiers, p_sensitive, p_hierarchy, p_for := 'kg_hierarchical_t_closeness')
  group by all
  order by all asc;
-- {% endmacro %}
