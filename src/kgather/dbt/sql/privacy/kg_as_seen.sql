-- {% macro ddl__kg_as_seen() %}
/*
Columns as whoever reads them sees them: a list of names in, a list of SQL expressions out, which are null where the
column is and else the bytes of its text. Values that a database takes for the same and a reader tells apart stay
apart: texts of a column that is `collate nocase`, and 0.0 and -0.0. Fails as kg_quoted does.
*/
create or replace macro kg_as_seen(p_names, p_for := 'kg_as_seen') as
  list_transform(kg_quoted(p_names, p_for := p_for), lambda kg_name: 'encode(cast(' || kg_name || ' as varchar))');
-- {% endmacro %}
