-- {% macro ddl__kg_class_frequencies() %}
/*
How often the values of sensitive columns occur in each equivalence class, without the values: one row for each class
and sensitive column, (class, sensitive_column, frequencies). class is its place in the order of all classes. The
frequencies are in no particular order; their sum is the size of the class. p_relation: name of a relation,
p_quasi_identifiers and p_sensitive: lists of column names. Null is a value like any other in all of them.
*/
create or replace macro kg_class_frequencies(
  p_relation, p_quasi_identifiers, p_sensitive, p_for := 'kg_class_frequencies'
) as table
  from query(
    kg_classed(p_relation, p_quasi_identifiers, p_sensitive, p_for := p_for)
    || array_to_string(
      list_transform(
        p_sensitive,
        lambda kg_sensitive, kg_place: format(
          'select kg_class as class, {0} as sensitive_column, list(kg_times) as frequencies
          from (
            select kg_class, sum(kg_n) as kg_times
            from kg_rows
            group by kg_class, kg_value_{1}
          )
          group by kg_class',
          '''' || replace(kg_sensitive, '''', '''''') || '''',
          kg_place
        )
      ),
      ' union all '
    )
  );
-- {% endmacro %}
