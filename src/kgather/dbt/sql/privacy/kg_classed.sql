-- {% macro ddl__kg_classed() %}
/*
The text of common table expressions that number the equivalence classes of a relation, for a query that begins with
it. kg_rows has one row for each class and combination of sensitive values: kg_class, its place in the order of all
classes, kg_value_1, kg_value_2 and so on, the sensitive values, and kg_n, how many rows of the relation they are. p_relation:
name of a relation, p_quasi_identifiers and p_sensitive: lists of column names, null a value like any other. Sorting and
joining numbers takes a fraction of what the columns themselves take.
*/
create or replace macro kg_classed(p_relation, p_quasi_identifiers, p_sensitive, p_for := 'kg_classed') as
  format(
    'with kg_seen as materialized (
      select {1}, {2}, count(*) as kg_n
      from query_table({0})
      group by all
    ),
    kg_classes as (
      select *, row_number() over (order by {3} asc) as kg_class
      from (select distinct {3} from kg_seen)
    ),
    kg_rows as materialized (
      select kg_classes.kg_class, {4}, kg_seen.kg_n
      from kg_seen
      join kg_classes on {5}
    )',
    '''' || replace(p_relation, '''', '''''') || '''',
    -- Names of its own, so that no column is taken for another.
    array_to_string(
      list_transform(
        kg_as_seen(p_quasi_identifiers, p_for := p_for), lambda kg_column, kg_place: kg_column || ' as kg_column_' || kg_place
      ),
      ', '
    ),
    array_to_string(
      list_transform(kg_quoted(p_sensitive, p_for := p_for), lambda kg_column, kg_place: kg_column || ' as kg_value_' || kg_place), ', '
    ),
    array_to_string(
      list_transform(p_quasi_identifiers, lambda kg_column, kg_place: 'kg_column_' || kg_place), ', '
    ),
    array_to_string(
      list_transform(p_sensitive, lambda kg_column, kg_place: 'kg_seen.kg_value_' || kg_place), ', '
    ),
    array_to_string(
      list_transform(
        p_quasi_identifiers,
        lambda kg_column, kg_place:
          'kg_seen.kg_column_' || kg_place || ' is not distinct from kg_classes.kg_column_' || kg_place
      ),
      ' and '
    )
  );
-- {% endmacro %}
