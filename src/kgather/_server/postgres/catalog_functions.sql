-- Functions of PostgreSQL that clients call about the catalog. What they would say of statistics, sizes, definitions and
-- privileges is the same for everybody: nothing.
create macro kg_user() as coalesce(getvariable('kg_user'), '');
create macro kg_database() as coalesce(getvariable('kg_database'), '');
-- A macro's argument is put into its text as it is: columns in here have names that no argument has.
create view kg_pg.kg_classes as
  select c.oid as kg_oid, c.relname as kg_name, n.nspname as kg_schema
  from kg_pg.pg_class as c join kg_pg.pg_namespace as n on n.oid = c.relnamespace;
create view kg_pg.kg_types as
  select oid as kg_oid, typname as kg_name, typcategory = 'A' as kg_is_array, typelem as kg_element
  from kg_pg.pg_type;
create view kg_pg.kg_schemas as select oid as kg_oid, nspname as kg_name from kg_pg.pg_namespace;
create view kg_pg.kg_texts as
  select objoid as kg_oid, classoid as kg_class, objsubid as kg_number, description as kg_text from kg_pg.pg_description;
create macro kg_regclass(name) as (
  select kg_oid from kg_pg.kg_classes
  where replace(name, '"', '')
    in (kg_name, kg_schema || '.' || kg_name, kg_database() || '.' || kg_schema || '.' || kg_name)
  order by kg_schema = 'pg_catalog' limit 1
);
create macro kg_class_name(id) as
  coalesce((select kg_name from kg_pg.kg_classes where kg_oid = id), cast(id as varchar));
create macro kg_regnamespace(name) as (select kg_oid from kg_pg.kg_schemas where kg_name = name);
create macro kg_namespace_name(id) as
  coalesce((select kg_name from kg_pg.kg_schemas where kg_oid = id), cast(id as varchar));
create macro kg_type_name(id) as case id
  when 16 then 'boolean' when 18 then '"char"' when 20 then 'bigint' when 21 then 'smallint' when 23 then 'integer'
  when 700 then 'real' when 701 then 'double precision' when 1043 then 'character varying'
  when 1083 then 'time without time zone' when 1114 then 'timestamp without time zone'
  when 1184 then 'timestamp with time zone' when 0 then '-'
end;
create macro format_type(id, modifier) as coalesce(
  kg_type_name(id),
  (select if(kg_is_array, coalesce(kg_type_name(kg_element), kg_name[2:]) || '[]', kg_name)
    from kg_pg.kg_types where kg_oid = id),
  if(id is null, null, '???')
);
create macro kg_regtype(name) as (
  select kg_oid from kg_pg.kg_types
  where replace(name, '"', '') in (kg_name, replace(kg_type_name(kg_oid), '"', ''), 'pg_catalog.' || kg_name)
  order by kg_oid limit 1
);
create macro pg_get_userbyid(id) as if(id = 10, 'kgather', kg_user());
create macro pg_encoding_to_char(id) as if(id = 6, 'UTF8', '');
create macro pg_char_to_encoding(name) as if(upper(replace(name, '-', '')) = 'UTF8', 6, -1);
create macro getdatabaseencoding() as 'UTF8';
create macro pg_table_is_visible(id) as true;
create macro pg_type_is_visible(id) as true;
create macro pg_function_is_visible(id) as true;
create macro pg_operator_is_visible(id) as true;
create macro pg_opclass_is_visible(id) as true;
create macro pg_collation_is_visible(id) as true;
create macro pg_conversion_is_visible(id) as true;
create macro pg_statistics_obj_is_visible(id) as true;
create macro pg_is_other_temp_schema(id) as false;
create macro pg_my_temp_schema() as 0;
create macro pg_is_in_recovery() as false;
create macro pg_is_wal_replay_paused() as false;
create macro pg_relation_is_publishable(id) as false;
create macro pg_relation_is_updatable(id, deep) as 0;
create macro pg_column_is_updatable(id, number, deep) as false;
create macro pg_backend_pid() as coalesce(getvariable('kg_pid'), 0);
create macro pg_postmaster_start_time() as cast(null as timestamp);
create macro pg_conf_load_time() as cast(null as timestamp);
create macro txid_current() as 1;
create macro transaction_timestamp() as now();
create macro statement_timestamp() as now();
create macro clock_timestamp() as now();
create macro pg_advisory_unlock_all() as '';
create macro pg_get_expr(node, id) as cast(null as varchar), (node, id, pretty) as cast(null as varchar);
create macro pg_get_viewdef(id) as cast(null as varchar), (id, pretty) as cast(null as varchar);
create macro pg_get_ruledef(id) as cast(null as varchar), (id, pretty) as cast(null as varchar);
create macro pg_get_triggerdef(id) as cast(null as varchar), (id, pretty) as cast(null as varchar);
create macro pg_get_constraintdef(id) as cast(null as varchar), (id, pretty) as cast(null as varchar);
create macro pg_get_indexdef(id) as cast(null as varchar), (id, number, pretty) as cast(null as varchar);
create macro pg_get_partkeydef(id) as cast(null as varchar);
create macro pg_get_partition_constraintdef(id) as cast(null as varchar);
create macro pg_get_functiondef(id) as cast(null as varchar);
create macro pg_get_function_result(id) as cast(null as varchar);
create macro pg_get_function_arguments(id) as cast(null as varchar);
create macro pg_get_function_identity_arguments(id) as cast(null as varchar);
create macro pg_get_function_sqlbody(id) as cast(null as varchar);
create macro pg_get_statisticsobjdef_columns(id) as cast(null as varchar);
create macro pg_get_serial_sequence(name, field) as cast(null as varchar);
create macro pg_get_keywords() as table select cast(null as varchar) as word, cast(null as varchar) as catcode,
  cast(null as varchar) as catdesc where false;
create macro pg_show_all_settings() as table from kg_pg.pg_settings;
create macro pg_available_extensions() as table
  select name, default_version, comment from kg_pg.pg_available_extensions;
create macro pg_available_extension_versions() as table
  select * exclude (installed) from kg_pg.pg_available_extension_versions;
create macro pg_tablespace_location(id) as '';
create macro pg_relation_size(id) as cast(null as bigint), (id, fork) as cast(null as bigint);
create macro pg_table_size(id) as cast(null as bigint);
create macro pg_indexes_size(id) as cast(null as bigint);
create macro pg_total_relation_size(id) as cast(null as bigint);
create macro pg_database_size(id) as cast(null as bigint);
create macro pg_tablespace_size(id) as cast(null as bigint);
create macro pg_size_pretty(size) as cast(null as varchar);
create macro pg_indexam_has_property(id, property) as cast(null as boolean);
create macro pg_index_column_has_property(id, number, property) as cast(null as boolean);
create macro pg_index_has_property(id, property) as cast(null as boolean);
create macro obj_description(id) as cast(null as varchar), (id, catalog) as (
  select kg_text from kg_pg.kg_texts where kg_oid = id and kg_number = 0 and kg_class = kg_regclass(catalog)
);
create macro shobj_description(id, catalog) as cast(null as varchar);
create macro col_description(id, number) as (
  select kg_text from kg_pg.kg_texts where kg_oid = id and kg_number = number and kg_number > 0
);
create macro kg_may(privilege) as lower(privilege) in ('select', 'usage', 'connect', 'member');
create macro has_table_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_any_column_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_column_privilege(a, b, c) as kg_may(c), (a, b, c, d) as kg_may(d);
create macro has_schema_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_database_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_sequence_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_function_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_tablespace_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_type_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro pg_has_role(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro to_regclass(name) as kg_regclass(name);
create macro to_regtype(name) as kg_regtype(name);
create macro quote_ident(name) as
  if(regexp_full_match(name, '[a-z_][a-z0-9_$]*'), name, '"' || replace(name, '"', '""') || '"');
create macro quote_literal(value) as '''' || replace(value, '''', '''''') || '''';
create macro array_upper(list, dimension) as if(len(list) = 0, null, len(list));
create macro array_lower(list, dimension) as if(len(list) = 0, null, 1);
create macro array_ndims(list) as if(len(list) = 0, null, 1);
create macro cardinality(list) as len(list);
create macro array_remove(list, value) as list_filter(list, lambda each: each is distinct from value);
create macro _pg_expandarray(list) as {'x': cast(null as integer), 'n': cast(null as integer)};
create macro _pg_char_max_length(id, modifier) as cast(null as integer);
create macro _pg_numeric_precision(id, modifier) as cast(null as integer);
create macro _pg_numeric_scale(id, modifier) as cast(null as integer);
create macro _pg_truetypid(a, t) as a.atttypid;
create macro _pg_truetypmod(a, t) as a.atttypmod;
create macro inet_server_addr() as cast(null as varchar);
create macro inet_server_port() as cast(null as integer);
create macro inet_client_addr() as cast(null as varchar);
create macro inet_client_port() as cast(null as integer);
create macro parse_ident(name) as list_transform(string_split(name, '.'), lambda part: replace(part, '"', ''));
create macro to_regnamespace(name) as kg_regnamespace(name);
create macro to_regrole(name) as if(name = kg_user(), 16383, null);
create macro to_regproc(name) as cast(null as varchar);
create macro pg_get_function_arg_default(id, number) as cast(null as varchar);
create macro pg_sequence_last_value(id) as cast(null as bigint);
create macro pg_stat_get_numscans(id) as cast(null as bigint);
create macro pg_stat_get_live_tuples(id) as cast(null as bigint);
create macro pg_relation_filenode(id) as cast(null as bigint);
create macro pg_relation_filepath(id) as cast(null as varchar);
create macro pg_collation_for(value) as cast(null as varchar);
create macro pg_typeof(value) as case typeof(value)
  when 'VARCHAR' then 'text' when 'UINTEGER' then 'oid' when 'DOUBLE' then 'double precision' when 'FLOAT' then 'real'
  when 'HUGEINT' then 'numeric' when 'TINYINT' then 'smallint' when 'TIMESTAMP' then 'timestamp without time zone'
  else if(typeof(value) like 'DECIMAL%', 'numeric', lower(typeof(value))) end;
create macro pg_column_size(value) as cast(null as integer);
create macro pg_ts_config_is_visible(id) as true;
create macro pg_ts_dict_is_visible(id) as true;
create macro pg_ts_parser_is_visible(id) as true;
create macro pg_ts_template_is_visible(id) as true;
create macro pg_opfamily_is_visible(id) as true;
create macro pg_is_in_backup() as false;
create macro pg_current_xact_id() as 1;
create macro txid_current_snapshot() as '1:1:';
create macro pg_export_snapshot() as '00000001-1';
create macro pg_blocking_pids(id) as cast([] as integer[]);
create macro has_server_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_foreign_data_wrapper_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro has_language_privilege(a, b) as kg_may(b), (a, b, c) as kg_may(c);
create macro row_security_active(id) as false;
create macro array_position(list, value) as list_position(list, value);
create macro aclexplode(acl) as {'grantor': cast(null as uinteger), 'grantee': cast(null as uinteger),
  'privilege_type': cast(null as varchar), 'is_grantable': cast(null as boolean)};
create macro acldefault(kind, id) as cast([] as varchar[]);
create macro btrim(value) as trim(value), (value, letters) as trim(value, letters);
create macro age(id) as 0;
create macro _pg_datetime_precision(id, modifier) as cast(null as integer);
create macro _pg_interval_type(id, modifier) as cast(null as varchar);
create macro _pg_numeric_precision_radix(id, modifier) as cast(null as integer);
create macro _pg_char_octet_length(id, modifier) as cast(null as integer);
-- Relations that look different to each session.
create view kg_pg.pg_roles_shown as select * replace (pg_get_userbyid(oid) as rolname) from kg_pg.pg_roles;
create view kg_pg.pg_user_shown as select * replace (kg_user() as usename) from kg_pg.pg_user;
create view kg_pg.pg_database_shown as select * replace (kg_database() as datname) from kg_pg.pg_database;
create view kg_info.catalog_name_shown as select kg_database() as catalog_name;
create view kg_info.enabled_roles_shown as select kg_user() as role_name;
create view kg_info.schemata_shown as select * replace (kg_database() as catalog_name) from kg_info.schemata;
create view kg_info.tables_shown as select * replace (kg_database() as table_catalog) from kg_info.tables;
create view kg_info.columns_shown as select * replace (kg_database() as table_catalog) from kg_info.columns;
