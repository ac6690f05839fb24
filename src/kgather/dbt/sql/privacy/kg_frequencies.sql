-- {% macro ddl__kg_frequencies() %}
/*
How often the values of sensitive columns occur in each equivalence class, without the values and without the class:
(sensitive_column, frequencies), else as kg_class_frequencies.
*/
create or replace macro kg_frequencies(p_relation, p_quasi_identifiers, p_sensitive) as table
  select sensitive_column, frequencies
  from kg_class_frequencies(p_relation, p_quasi_identifiers, p_sensitive, p_for := 'kg_frequencies');
-- {% endmacro %}
