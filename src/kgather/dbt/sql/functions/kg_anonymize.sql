/*
A table of people, anonymized: every combination of what it shows of the quasi-identifiers belongs to at least k rows.
p_relation: name of a relation with one row for each person. p_settings: a struct or JSON, as
  {k: 10, quasi_identifiers: {age: {step: 5}, zip: {kind: 'prefix'}, sex: {}}, sensitive: ['illness'], l: 3}
docs/tables.md lists what it may say. Gives the quasi-identifiers, sensitive columns and others that it names, in this
order, and no other column: quasi-identifiers as texts, the others as they are. Rows are in the order of what they show.
*/
create or replace macro kg_anonymize(p_relation, p_settings) as table
  from query(kg_anonymization_text(p_relation, cast(to_json(p_settings) as varchar), 'rows'));
