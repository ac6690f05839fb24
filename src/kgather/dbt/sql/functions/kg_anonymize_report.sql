/*
What kg_anonymize does with the same arguments, and what it costs, as one row (report), a JSON text: how many rows and
classes there are, how each column was read and what it lost, and how many rows are suppressed, in steps of k.
*/
create or replace macro kg_anonymize_report(p_relation, p_settings) as table
  from query(kg_anonymization_text(p_relation, cast(to_json(p_settings) as varchar), 'report'));
