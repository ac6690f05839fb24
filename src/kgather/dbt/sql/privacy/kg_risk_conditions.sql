-- {% macro ddl__kg_risk_conditions() %}
/*
Conditions that match few rows: "column = value and ..." (or "is null") over sets of up to p_m of p_columns, a list of
column names, that match 1 to p_k - 1 rows. p_relation: name of a relation. Gives (column_names, matched_rows,
conditions): how many conditions on those columns match so many rows, never their values.

With p_null true, null can be asked for, and sets of exactly p_m columns (all, where there are fewer) are looked at: a
condition on fewer columns matches all rows of some conditions on more, which are as few at most. With p_null false,
sets of 1 to p_m columns are. Where every combination of all columns has p_k rows, nothing else is looked at.
*/
create or replace macro kg_risk_conditions(p_relation, p_columns, p_k, p_m, p_null := true) as table
  select column_names, matched_rows, conditions
  from kg_risk(p_relation, p_columns, p_k, p_m, p_null := p_null, p_for := 'kg_risk_conditions')
  order by all asc;
-- {% endmacro %}
