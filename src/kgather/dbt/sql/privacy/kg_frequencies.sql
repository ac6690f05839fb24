-- {% macro ddl__kg_frequencies() %}
/*
How often the values of sensitive columns occur in each equivalence class, without the values: one row for each class
and sensitive column, (sensitive_column, frequencies), the frequencies in no particular order; their sum is the size of
the class. p_relation: name of a relation, p_quasi_identifiers and p_sensitive: lists of column names. Null is a value
like any other in all of them.
*/
create or replace macro kg_frequencies(p_relation, p_quasi_identifiers, p_sensitive) as table
  from query(array_to_string(
    list_transform(
      kg_quoted(p_sensitive),
      lambda kg_sensitive, kg_position: format(
        'select {0} as sensitive_column, list(kg_n) as frequencies
        from (
          select {1}, count(*) as kg_n
          from query_table({2})
          group by {3}, {4}
        )
        group by {5}',
        '''' || replace(p_sensitive[kg_position], '''', '''''') || '''',
        -- Names of its own, so that no column is taken for another.
        array_to_string(
          list_transform(
            kg_as_seen(p_quasi_identifiers), lambda kg_column, kg_place: kg_column || ' as kg_column_' || kg_place
          ),
          ', '
        ),
        '''' || replace(p_relation, '''', '''''') || '''',
        array_to_string(kg_as_seen(p_quasi_identifiers), ', '),
        kg_sensitive,
        array_to_string(
          list_transform(p_quasi_identifiers, lambda kg_column, kg_place: 'kg_column_' || kg_place), ', '
        )
      )
    ),
    ' union all '
  ));
-- {% endmacro %}
