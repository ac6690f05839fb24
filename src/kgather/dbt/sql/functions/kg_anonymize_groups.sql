/*
Who looks the same in what kg_anonymize makes with the same arguments: (unit, group_id), a row for each person, the first
column by the name that p_settings gives the unit. Other tables of the same people are made within it, by `within`; k then
holds for all of them together. It says who is in which class: never show it to anybody.
*/
create or replace macro kg_anonymize_groups(p_relation, p_settings) as table
  from query(kg_anonymization_text(p_relation, cast(to_json(p_settings) as varchar), 'groups'));
