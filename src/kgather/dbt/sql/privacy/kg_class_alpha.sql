-- {% macro ddl__kg_class_alpha() %}
/*
How much of each equivalence class its most frequent sensitive value takes: (class, sensitive_column, class_size,
alpha), one row for each class and sensitive column, alpha between 0 and 1, rounded to 9 digits. class is its place in
the order of all classes. The arguments are those of kg_class_frequencies.
*/
create or replace macro kg_class_alpha(p_relation, p_quasi_identifiers, p_sensitive, p_for := 'kg_class_alpha') as table
  select
    class,
    sensitive_column,
    cast(list_sum(frequencies) as bigint) as class_size,
    round(list_max(frequencies) / list_sum(frequencies), 9) as alpha
  from kg_class_frequencies(p_relation, p_quasi_identifiers, p_sensitive, p_for := p_for);
-- {% endmacro %}
