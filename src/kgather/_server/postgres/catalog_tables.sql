-- The relations of PostgreSQL's catalog that clients ask about, with the columns that PostgreSQL 15 to 18 give them.
-- They hold what kgather._server.postgres.catalog puts into them, and nothing else. UINTEGER stands for oid.
create schema kg_pg;
create schema kg_info;
create table kg_pg.pg_aggregate (
  aggfnoid varchar, aggkind varchar, aggnumdirectargs smallint, aggtransfn varchar, aggfinalfn varchar, aggcombinefn
  varchar, aggserialfn varchar, aggdeserialfn varchar, aggmtransfn varchar, aggminvtransfn varchar, aggmfinalfn
  varchar, aggfinalextra boolean, aggmfinalextra boolean, aggfinalmodify varchar, aggmfinalmodify varchar, aggsortop
  uinteger, aggtranstype uinteger, aggtransspace integer, aggmtranstype uinteger, aggmtransspace integer, agginitval
  varchar, aggminitval varchar
);
create table kg_pg.pg_am (
  oid uinteger, amname varchar, amhandler varchar, amtype varchar
);
create table kg_pg.pg_amop (
  oid uinteger, amopfamily uinteger, amoplefttype uinteger, amoprighttype uinteger, amopstrategy smallint,
  amoppurpose varchar, amopopr uinteger, amopmethod uinteger, amopsortfamily uinteger
);
create table kg_pg.pg_attrdef (
  oid uinteger, adrelid uinteger, adnum smallint, adbin varchar
);
create table kg_pg.pg_attribute (
  attrelid uinteger, attname varchar, atttypid uinteger, attlen smallint, attnum smallint, atttypmod integer,
  attndims smallint, attbyval boolean, attalign varchar, attstorage varchar, attcompression varchar, attnotnull
  boolean, atthasdef boolean, atthasmissing boolean, attidentity varchar, attgenerated varchar, attisdropped
  boolean, attislocal boolean, attinhcount smallint, attcollation uinteger, attstattarget smallint, attacl
  varchar[], attoptions varchar[], attfdwoptions varchar[], attmissingval varchar
);
create table kg_pg.pg_auth_members (
  oid uinteger, roleid uinteger, member uinteger, grantor uinteger, admin_option boolean, inherit_option boolean,
  set_option boolean
);
create table kg_pg.pg_available_extension_versions (
  name varchar, version varchar, installed boolean, superuser boolean, trusted boolean, relocatable boolean, schema
  varchar, requires varchar[], comment varchar
);
create table kg_pg.pg_available_extensions (
  name varchar, default_version varchar, installed_version varchar, comment varchar
);
create table kg_pg.pg_cast (
  oid uinteger, castsource uinteger, casttarget uinteger, castfunc uinteger, castcontext varchar, castmethod varchar
);
create table kg_pg.pg_class (
  oid uinteger, relname varchar, relnamespace uinteger, reltype uinteger, reloftype uinteger, relowner uinteger,
  relam uinteger, relfilenode uinteger, reltablespace uinteger, relpages integer, reltuples real, relallvisible
  integer, relallfrozen integer, reltoastrelid uinteger, relhasindex boolean, relisshared boolean, relpersistence
  varchar, relkind varchar, relnatts smallint, relchecks smallint, relhasrules boolean, relhastriggers boolean,
  relhassubclass boolean, relrowsecurity boolean, relforcerowsecurity boolean, relispopulated boolean, relreplident
  varchar, relispartition boolean, relrewrite uinteger, relfrozenxid bigint, relminmxid bigint, relacl varchar[],
  reloptions varchar[], relpartbound varchar
);
create table kg_pg.pg_collation (
  oid uinteger, collname varchar, collnamespace uinteger, collowner uinteger, collprovider varchar,
  collisdeterministic boolean, collencoding integer, collcollate varchar, collctype varchar, colllocale varchar,
  collicurules varchar, collversion varchar, colliculocale varchar
);
create table kg_pg.pg_constraint (
  oid uinteger, conname varchar, connamespace uinteger, contype varchar, condeferrable boolean, condeferred boolean,
  conenforced boolean, convalidated boolean, conrelid uinteger, contypid uinteger, conindid uinteger, conparentid
  uinteger, confrelid uinteger, confupdtype varchar, confdeltype varchar, confmatchtype varchar, conislocal boolean,
  coninhcount smallint, connoinherit boolean, conperiod boolean, conkey smallint[], confkey smallint[], conpfeqop
  uinteger[], conppeqop uinteger[], conffeqop uinteger[], confdelsetcols smallint[], conexclop uinteger[], conbin
  varchar
);
create table kg_pg.pg_cursors (
  name varchar, statement varchar, is_holdable boolean, is_binary boolean, is_scrollable boolean, creation_time
  timestamp
);
create table kg_pg.pg_database (
  oid uinteger, datname varchar, datdba uinteger, encoding integer, datlocprovider varchar, datistemplate boolean,
  datallowconn boolean, dathasloginevt boolean, datconnlimit integer, datfrozenxid bigint, datminmxid bigint,
  dattablespace uinteger, datcollate varchar, datctype varchar, datlocale varchar, daticurules varchar,
  datcollversion varchar, datacl varchar[], daticulocale varchar
);
create table kg_pg.pg_db_role_setting (
  setdatabase uinteger, setrole uinteger, setconfig varchar[]
);
create table kg_pg.pg_default_acl (
  oid uinteger, defaclrole uinteger, defaclnamespace uinteger, defaclobjtype varchar, defaclacl varchar[]
);
create table kg_pg.pg_depend (
  classid uinteger, objid uinteger, objsubid integer, refclassid uinteger, refobjid uinteger, refobjsubid integer,
  deptype varchar
);
create table kg_pg.pg_description (
  objoid uinteger, classoid uinteger, objsubid integer, description varchar
);
create table kg_pg.pg_enum (
  oid uinteger, enumtypid uinteger, enumsortorder real, enumlabel varchar
);
create table kg_pg.pg_event_trigger (
  oid uinteger, evtname varchar, evtevent varchar, evtowner uinteger, evtfoid uinteger, evtenabled varchar, evttags
  varchar[]
);
create table kg_pg.pg_extension (
  oid uinteger, extname varchar, extowner uinteger, extnamespace uinteger, extrelocatable boolean, extversion
  varchar, extconfig uinteger[], extcondition varchar[]
);
create table kg_pg.pg_foreign_data_wrapper (
  oid uinteger, fdwname varchar, fdwowner uinteger, fdwhandler uinteger, fdwvalidator uinteger, fdwacl varchar[],
  fdwoptions varchar[]
);
create table kg_pg.pg_foreign_server (
  oid uinteger, srvname varchar, srvowner uinteger, srvfdw uinteger, srvtype varchar, srvversion varchar, srvacl
  varchar[], srvoptions varchar[]
);
create table kg_pg.pg_foreign_table (
  ftrelid uinteger, ftserver uinteger, ftoptions varchar[]
);
create table kg_pg.pg_index (
  indexrelid uinteger, indrelid uinteger, indnatts smallint, indnkeyatts smallint, indisunique boolean,
  indnullsnotdistinct boolean, indisprimary boolean, indisexclusion boolean, indimmediate boolean, indisclustered
  boolean, indisvalid boolean, indcheckxmin boolean, indisready boolean, indislive boolean, indisreplident boolean,
  indkey smallint[], indcollation uinteger[], indclass uinteger[], indoption smallint[], indexprs varchar, indpred
  varchar
);
create table kg_pg.pg_indexes (
  schemaname varchar, tablename varchar, indexname varchar, tablespace varchar, indexdef varchar
);
create table kg_pg.pg_inherits (
  inhrelid uinteger, inhparent uinteger, inhseqno integer, inhdetachpending boolean
);
create table kg_pg.pg_language (
  oid uinteger, lanname varchar, lanowner uinteger, lanispl boolean, lanpltrusted boolean, lanplcallfoid uinteger,
  laninline uinteger, lanvalidator uinteger, lanacl varchar[]
);
create table kg_pg.pg_locks (
  locktype varchar, database uinteger, relation uinteger, page integer, "tuple" smallint, virtualxid varchar,
  transactionid bigint, classid uinteger, objid uinteger, objsubid smallint, virtualtransaction varchar, pid
  integer, mode varchar, granted boolean, fastpath boolean, waitstart timestamp
);
create table kg_pg.pg_matviews (
  schemaname varchar, matviewname varchar, matviewowner varchar, tablespace varchar, hasindexes boolean, ispopulated
  boolean, definition varchar
);
create table kg_pg.pg_namespace (
  oid uinteger, nspname varchar, nspowner uinteger, nspacl varchar[]
);
create table kg_pg.pg_opclass (
  oid uinteger, opcmethod uinteger, opcname varchar, opcnamespace uinteger, opcowner uinteger, opcfamily uinteger,
  opcintype uinteger, opcdefault boolean, opckeytype uinteger
);
create table kg_pg.pg_operator (
  oid uinteger, oprname varchar, oprnamespace uinteger, oprowner uinteger, oprkind varchar, oprcanmerge boolean,
  oprcanhash boolean, oprleft uinteger, oprright uinteger, oprresult uinteger, oprcom uinteger, oprnegate uinteger,
  oprcode varchar, oprrest varchar, oprjoin varchar
);
create table kg_pg.pg_opfamily (
  oid uinteger, opfmethod uinteger, opfname varchar, opfnamespace uinteger, opfowner uinteger
);
create table kg_pg.pg_partitioned_table (
  partrelid uinteger, partstrat varchar, partnatts smallint, partdefid uinteger, partattrs smallint[], partclass
  uinteger[], partcollation uinteger[], partexprs varchar
);
create table kg_pg.pg_policies (
  schemaname varchar, tablename varchar, policyname varchar, permissive varchar, roles varchar[], cmd varchar, qual
  varchar, with_check varchar
);
create table kg_pg.pg_policy (
  oid uinteger, polname varchar, polrelid uinteger, polcmd varchar, polpermissive boolean, polroles uinteger[],
  polqual varchar, polwithcheck varchar
);
create table kg_pg.pg_proc (
  oid uinteger, proname varchar, pronamespace uinteger, proowner uinteger, prolang uinteger, procost real, prorows
  real, provariadic uinteger, prosupport varchar, prokind varchar, prosecdef boolean, proleakproof boolean,
  proisstrict boolean, proretset boolean, provolatile varchar, proparallel varchar, pronargs smallint,
  pronargdefaults smallint, prorettype uinteger, proargtypes uinteger[], proallargtypes uinteger[], proargmodes
  varchar[], proargnames varchar[], proargdefaults varchar, protrftypes uinteger[], prosrc varchar, probin varchar,
  prosqlbody varchar, proconfig varchar[], proacl varchar[]
);
create table kg_pg.pg_publication (
  oid uinteger, pubname varchar, pubowner uinteger, puballtables boolean, pubinsert boolean, pubupdate boolean,
  pubdelete boolean, pubtruncate boolean, pubviaroot boolean, pubgencols varchar
);
create table kg_pg.pg_publication_namespace (
  oid uinteger, pnpubid uinteger, pnnspid uinteger
);
create table kg_pg.pg_publication_rel (
  oid uinteger, prpubid uinteger, prrelid uinteger, prqual varchar, prattrs smallint[]
);
create table kg_pg.pg_publication_tables (
  pubname varchar, schemaname varchar, tablename varchar, attnames varchar[], rowfilter varchar
);
create table kg_pg.pg_range (
  rngtypid uinteger, rngsubtype uinteger, rngmultitypid uinteger, rngcollation uinteger, rngsubopc uinteger,
  rngcanonical varchar, rngsubdiff varchar
);
create table kg_pg.pg_rewrite (
  oid uinteger, rulename varchar, ev_class uinteger, ev_type varchar, ev_enabled varchar, is_instead boolean,
  ev_qual varchar, ev_action varchar
);
create table kg_pg.pg_roles (
  rolname varchar, rolsuper boolean, rolinherit boolean, rolcreaterole boolean, rolcreatedb boolean, rolcanlogin
  boolean, rolreplication boolean, rolconnlimit integer, rolpassword varchar, rolvaliduntil timestamp, rolbypassrls
  boolean, rolconfig varchar[], oid uinteger
);
create table kg_pg.pg_rules (
  schemaname varchar, tablename varchar, rulename varchar, definition varchar
);
create table kg_pg.pg_seclabels (
  objoid uinteger, classoid uinteger, objsubid integer, objtype varchar, objnamespace uinteger, objname varchar,
  provider varchar, label varchar
);
create table kg_pg.pg_sequence (
  seqrelid uinteger, seqtypid uinteger, seqstart bigint, seqincrement bigint, seqmax bigint, seqmin bigint, seqcache
  bigint, seqcycle boolean
);
create table kg_pg.pg_sequences (
  schemaname varchar, sequencename varchar, sequenceowner varchar, data_type varchar, start_value bigint, min_value
  bigint, max_value bigint, increment_by bigint, cycle boolean, cache_size bigint, last_value bigint
);
create table kg_pg.pg_settings (
  name varchar, setting varchar, unit varchar, category varchar, short_desc varchar, extra_desc varchar, context
  varchar, vartype varchar, source varchar, min_val varchar, max_val varchar, enumvals varchar[], boot_val varchar,
  reset_val varchar, sourcefile varchar, sourceline integer, pending_restart boolean
);
create table kg_pg.pg_shdepend (
  dbid uinteger, classid uinteger, objid uinteger, objsubid integer, refclassid uinteger, refobjid uinteger, deptype
  varchar
);
create table kg_pg.pg_shdescription (
  objoid uinteger, classoid uinteger, description varchar
);
create table kg_pg.pg_shseclabel (
  objoid uinteger, classoid uinteger, provider varchar, label varchar
);
create table kg_pg.pg_stat_activity (
  datid uinteger, datname varchar, pid integer, leader_pid integer, usesysid uinteger, usename varchar,
  application_name varchar, client_addr varchar, client_hostname varchar, client_port integer, backend_start
  timestamp, xact_start timestamp, query_start timestamp, state_change timestamp, wait_event_type varchar,
  wait_event varchar, state varchar, backend_xid bigint, backend_xmin bigint, query_id bigint, query varchar,
  backend_type varchar
);
create table kg_pg.pg_stat_all_tables (
  relid uinteger, schemaname varchar, relname varchar, seq_scan bigint, last_seq_scan timestamp, seq_tup_read
  bigint, idx_scan bigint, last_idx_scan timestamp, idx_tup_fetch bigint, n_tup_ins bigint, n_tup_upd bigint,
  n_tup_del bigint, n_tup_hot_upd bigint, n_tup_newpage_upd bigint, n_live_tup bigint, n_dead_tup bigint,
  n_mod_since_analyze bigint, n_ins_since_vacuum bigint, last_vacuum timestamp, last_autovacuum timestamp,
  last_analyze timestamp, last_autoanalyze timestamp, vacuum_count bigint, autovacuum_count bigint, analyze_count
  bigint, autoanalyze_count bigint, total_vacuum_time double, total_autovacuum_time double, total_analyze_time
  double, total_autoanalyze_time double
);
create table kg_pg.pg_stat_gssapi (
  pid integer, gss_authenticated boolean, principal varchar, encrypted boolean, credentials_delegated boolean
);
create table kg_pg.pg_stat_ssl (
  pid integer, ssl boolean, version varchar, cipher varchar, bits integer, client_dn varchar, client_serial varchar,
  issuer_dn varchar
);
create table kg_pg.pg_stat_user_tables as from kg_pg.pg_stat_all_tables;
create table kg_pg.pg_statistic_ext (
  oid uinteger, stxrelid uinteger, stxname varchar, stxnamespace uinteger, stxowner uinteger, stxkeys smallint[],
  stxstattarget smallint, stxkind varchar[], stxexprs varchar
);
create table kg_pg.pg_subscription (
  oid uinteger, subdbid uinteger, subskiplsn varchar, subname varchar, subowner uinteger, subenabled boolean,
  subbinary boolean, substream varchar, subtwophasestate varchar, subdisableonerr boolean, subpasswordrequired
  boolean, subrunasowner boolean, subfailover boolean, subconninfo varchar, subslotname varchar, subsynccommit
  varchar, subpublications varchar[], suborigin varchar
);
create table kg_pg.pg_tables (
  schemaname varchar, tablename varchar, tableowner varchar, tablespace varchar, hasindexes boolean, hasrules
  boolean, hastriggers boolean, rowsecurity boolean
);
create table kg_pg.pg_tablespace (
  oid uinteger, spcname varchar, spcowner uinteger, spcacl varchar[], spcoptions varchar[]
);
create table kg_pg.pg_timezone_names (
  name varchar, abbrev varchar, utc_offset varchar, is_dst boolean
);
create table kg_pg.pg_trigger (
  oid uinteger, tgrelid uinteger, tgparentid uinteger, tgname varchar, tgfoid uinteger, tgtype smallint, tgenabled
  varchar, tgisinternal boolean, tgconstrrelid uinteger, tgconstrindid uinteger, tgconstraint uinteger, tgdeferrable
  boolean, tginitdeferred boolean, tgnargs smallint, tgattr smallint[], tgargs blob, tgqual varchar, tgoldtable
  varchar, tgnewtable varchar
);
create table kg_pg.pg_type (
  oid uinteger, typname varchar, typnamespace uinteger, typowner uinteger, typlen smallint, typbyval boolean,
  typtype varchar, typcategory varchar, typispreferred boolean, typisdefined boolean, typdelim varchar, typrelid
  uinteger, typsubscript varchar, typelem uinteger, typarray uinteger, typinput varchar, typoutput varchar,
  typreceive varchar, typsend varchar, typmodin varchar, typmodout varchar, typanalyze varchar, typalign varchar,
  typstorage varchar, typnotnull boolean, typbasetype uinteger, typtypmod integer, typndims integer, typcollation
  uinteger, typdefaultbin varchar, typdefault varchar, typacl varchar[]
);
create table kg_pg.pg_user (
  usename varchar, usesysid uinteger, usecreatedb boolean, usesuper boolean, userepl boolean, usebypassrls boolean,
  passwd varchar, valuntil timestamp, useconfig varchar[]
);
create table kg_pg.pg_user_mapping (
  oid uinteger, umuser uinteger, umserver uinteger, umoptions varchar[]
);
create table kg_pg.pg_views (
  schemaname varchar, viewname varchar, viewowner varchar, definition varchar
);
create table kg_info.applicable_roles (
  grantee varchar, role_name varchar, is_grantable varchar
);
create table kg_info.attributes (
  udt_catalog varchar, udt_schema varchar, udt_name varchar, attribute_name varchar, ordinal_position integer,
  attribute_default varchar, is_nullable varchar, data_type varchar, character_maximum_length integer,
  character_octet_length integer, character_set_catalog varchar, character_set_schema varchar, character_set_name
  varchar, collation_catalog varchar, collation_schema varchar, collation_name varchar, numeric_precision integer,
  numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type varchar,
  interval_precision integer, attribute_udt_catalog varchar, attribute_udt_schema varchar, attribute_udt_name
  varchar, scope_catalog varchar, scope_schema varchar, scope_name varchar, maximum_cardinality integer,
  dtd_identifier varchar, is_derived_reference_attribute varchar
);
create table kg_info.character_sets (
  character_set_catalog varchar, character_set_schema varchar, character_set_name varchar, character_repertoire
  varchar, form_of_use varchar, default_collate_catalog varchar, default_collate_schema varchar,
  default_collate_name varchar
);
create table kg_info.check_constraints (
  constraint_catalog varchar, constraint_schema varchar, constraint_name varchar, check_clause varchar
);
create table kg_info.collations (
  collation_catalog varchar, collation_schema varchar, collation_name varchar, pad_attribute varchar
);
create table kg_info.column_domain_usage (
  domain_catalog varchar, domain_schema varchar, domain_name varchar, table_catalog varchar, table_schema varchar,
  table_name varchar, column_name varchar
);
create table kg_info.column_options (
  table_catalog varchar, table_schema varchar, table_name varchar, column_name varchar, option_name varchar,
  option_value varchar
);
create table kg_info.column_privileges (
  grantor varchar, grantee varchar, table_catalog varchar, table_schema varchar, table_name varchar, column_name
  varchar, privilege_type varchar, is_grantable varchar
);
create table kg_info.column_udt_usage (
  udt_catalog varchar, udt_schema varchar, udt_name varchar, table_catalog varchar, table_schema varchar, table_name
  varchar, column_name varchar
);
create table kg_info.columns (
  table_catalog varchar, table_schema varchar, table_name varchar, column_name varchar, ordinal_position integer,
  column_default varchar, is_nullable varchar, data_type varchar, character_maximum_length integer,
  character_octet_length integer, numeric_precision integer, numeric_precision_radix integer, numeric_scale integer,
  datetime_precision integer, interval_type varchar, interval_precision integer, character_set_catalog varchar,
  character_set_schema varchar, character_set_name varchar, collation_catalog varchar, collation_schema varchar,
  collation_name varchar, domain_catalog varchar, domain_schema varchar, domain_name varchar, udt_catalog varchar,
  udt_schema varchar, udt_name varchar, scope_catalog varchar, scope_schema varchar, scope_name varchar,
  maximum_cardinality integer, dtd_identifier varchar, is_self_referencing varchar, is_identity varchar,
  identity_generation varchar, identity_start varchar, identity_increment varchar, identity_maximum varchar,
  identity_minimum varchar, identity_cycle varchar, is_generated varchar, generation_expression varchar,
  is_updatable varchar
);
create table kg_info.constraint_column_usage (
  table_catalog varchar, table_schema varchar, table_name varchar, column_name varchar, constraint_catalog varchar,
  constraint_schema varchar, constraint_name varchar
);
create table kg_info.constraint_table_usage (
  table_catalog varchar, table_schema varchar, table_name varchar, constraint_catalog varchar, constraint_schema
  varchar, constraint_name varchar
);
create table kg_info.domain_constraints (
  constraint_catalog varchar, constraint_schema varchar, constraint_name varchar, domain_catalog varchar,
  domain_schema varchar, domain_name varchar, is_deferrable varchar, initially_deferred varchar
);
create table kg_info.domains (
  domain_catalog varchar, domain_schema varchar, domain_name varchar, data_type varchar, character_maximum_length
  integer, character_octet_length integer, character_set_catalog varchar, character_set_schema varchar,
  character_set_name varchar, collation_catalog varchar, collation_schema varchar, collation_name varchar,
  numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, datetime_precision integer,
  interval_type varchar, interval_precision integer, domain_default varchar, udt_catalog varchar, udt_schema
  varchar, udt_name varchar, scope_catalog varchar, scope_schema varchar, scope_name varchar, maximum_cardinality
  integer, dtd_identifier varchar
);
create table kg_info.element_types (
  object_catalog varchar, object_schema varchar, object_name varchar, object_type varchar,
  collection_type_identifier varchar, data_type varchar, character_maximum_length integer, character_octet_length
  integer, character_set_catalog varchar, character_set_schema varchar, character_set_name varchar,
  collation_catalog varchar, collation_schema varchar, collation_name varchar, numeric_precision integer,
  numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type varchar,
  interval_precision integer, udt_catalog varchar, udt_schema varchar, udt_name varchar, scope_catalog varchar,
  scope_schema varchar, scope_name varchar, maximum_cardinality integer, dtd_identifier varchar
);
create table kg_info.enabled_roles (
  role_name varchar
);
create table kg_info.foreign_servers (
  foreign_server_catalog varchar, foreign_server_name varchar, foreign_data_wrapper_catalog varchar,
  foreign_data_wrapper_name varchar, foreign_server_type varchar, foreign_server_version varchar,
  authorization_identifier varchar
);
create table kg_info.foreign_tables (
  foreign_table_catalog varchar, foreign_table_schema varchar, foreign_table_name varchar, foreign_server_catalog
  varchar, foreign_server_name varchar
);
create table kg_info.information_schema_catalog_name (
  catalog_name varchar
);
create table kg_info.key_column_usage (
  constraint_catalog varchar, constraint_schema varchar, constraint_name varchar, table_catalog varchar,
  table_schema varchar, table_name varchar, column_name varchar, ordinal_position integer,
  position_in_unique_constraint integer
);
create table kg_info.parameters (
  specific_catalog varchar, specific_schema varchar, specific_name varchar, ordinal_position integer, parameter_mode
  varchar, is_result varchar, as_locator varchar, parameter_name varchar, data_type varchar,
  character_maximum_length integer, character_octet_length integer, character_set_catalog varchar,
  character_set_schema varchar, character_set_name varchar, collation_catalog varchar, collation_schema varchar,
  collation_name varchar, numeric_precision integer, numeric_precision_radix integer, numeric_scale integer,
  datetime_precision integer, interval_type varchar, interval_precision integer, udt_catalog varchar, udt_schema
  varchar, udt_name varchar, scope_catalog varchar, scope_schema varchar, scope_name varchar, maximum_cardinality
  integer, dtd_identifier varchar, parameter_default varchar
);
create table kg_info.referential_constraints (
  constraint_catalog varchar, constraint_schema varchar, constraint_name varchar, unique_constraint_catalog varchar,
  unique_constraint_schema varchar, unique_constraint_name varchar, match_option varchar, update_rule varchar,
  delete_rule varchar
);
create table kg_info.role_column_grants (
  grantor varchar, grantee varchar, table_catalog varchar, table_schema varchar, table_name varchar, column_name
  varchar, privilege_type varchar, is_grantable varchar
);
create table kg_info.role_table_grants (
  grantor varchar, grantee varchar, table_catalog varchar, table_schema varchar, table_name varchar, privilege_type
  varchar, is_grantable varchar, with_hierarchy varchar
);
create table kg_info.routine_privileges (
  grantor varchar, grantee varchar, specific_catalog varchar, specific_schema varchar, specific_name varchar,
  routine_catalog varchar, routine_schema varchar, routine_name varchar, privilege_type varchar, is_grantable
  varchar
);
create table kg_info.routines (
  specific_catalog varchar, specific_schema varchar, specific_name varchar, routine_catalog varchar, routine_schema
  varchar, routine_name varchar, routine_type varchar, module_catalog varchar, module_schema varchar, module_name
  varchar, udt_catalog varchar, udt_schema varchar, udt_name varchar, data_type varchar, character_maximum_length
  integer, character_octet_length integer, character_set_catalog varchar, character_set_schema varchar,
  character_set_name varchar, collation_catalog varchar, collation_schema varchar, collation_name varchar,
  numeric_precision integer, numeric_precision_radix integer, numeric_scale integer, datetime_precision integer,
  interval_type varchar, interval_precision integer, type_udt_catalog varchar, type_udt_schema varchar,
  type_udt_name varchar, scope_catalog varchar, scope_schema varchar, scope_name varchar, maximum_cardinality
  integer, dtd_identifier varchar, routine_body varchar, routine_definition varchar, external_name varchar,
  external_language varchar, parameter_style varchar, is_deterministic varchar, sql_data_access varchar,
  is_null_call varchar, sql_path varchar, schema_level_routine varchar, max_dynamic_result_sets integer,
  is_user_defined_cast varchar, is_implicitly_invocable varchar, security_type varchar, to_sql_specific_catalog
  varchar, to_sql_specific_schema varchar, to_sql_specific_name varchar, as_locator varchar, created timestamp,
  last_altered timestamp, new_savepoint_level varchar, is_udt_dependent varchar, result_cast_from_data_type varchar,
  result_cast_as_locator varchar, result_cast_char_max_length integer, result_cast_char_octet_length integer,
  result_cast_char_set_catalog varchar, result_cast_char_set_schema varchar, result_cast_char_set_name varchar,
  result_cast_collation_catalog varchar, result_cast_collation_schema varchar, result_cast_collation_name varchar,
  result_cast_numeric_precision integer, result_cast_numeric_precision_radix integer, result_cast_numeric_scale
  integer, result_cast_datetime_precision integer, result_cast_interval_type varchar, result_cast_interval_precision
  integer, result_cast_type_udt_catalog varchar, result_cast_type_udt_schema varchar, result_cast_type_udt_name
  varchar, result_cast_scope_catalog varchar, result_cast_scope_schema varchar, result_cast_scope_name varchar,
  result_cast_maximum_cardinality integer, result_cast_dtd_identifier varchar
);
create table kg_info.schemata (
  catalog_name varchar, schema_name varchar, schema_owner varchar, default_character_set_catalog varchar,
  default_character_set_schema varchar, default_character_set_name varchar, sql_path varchar
);
create table kg_info.sequences (
  sequence_catalog varchar, sequence_schema varchar, sequence_name varchar, data_type varchar, numeric_precision
  integer, numeric_precision_radix integer, numeric_scale integer, start_value varchar, minimum_value varchar,
  maximum_value varchar, increment varchar, cycle_option varchar
);
create table kg_info.table_constraints (
  constraint_catalog varchar, constraint_schema varchar, constraint_name varchar, table_catalog varchar,
  table_schema varchar, table_name varchar, constraint_type varchar, is_deferrable varchar, initially_deferred
  varchar, enforced varchar, nulls_distinct varchar
);
create table kg_info.table_privileges (
  grantor varchar, grantee varchar, table_catalog varchar, table_schema varchar, table_name varchar, privilege_type
  varchar, is_grantable varchar, with_hierarchy varchar
);
create table kg_info.tables (
  table_catalog varchar, table_schema varchar, table_name varchar, table_type varchar, self_referencing_column_name
  varchar, reference_generation varchar, user_defined_type_catalog varchar, user_defined_type_schema varchar,
  user_defined_type_name varchar, is_insertable_into varchar, is_typed varchar, commit_action varchar
);
create table kg_info.triggers (
  trigger_catalog varchar, trigger_schema varchar, trigger_name varchar, event_manipulation varchar,
  event_object_catalog varchar, event_object_schema varchar, event_object_table varchar, action_order integer,
  action_condition varchar, action_statement varchar, action_orientation varchar, action_timing varchar,
  action_reference_old_table varchar, action_reference_new_table varchar, action_reference_old_row varchar,
  action_reference_new_row varchar, created timestamp
);
create table kg_info.udt_privileges (
  grantor varchar, grantee varchar, udt_catalog varchar, udt_schema varchar, udt_name varchar, privilege_type
  varchar, is_grantable varchar
);
create table kg_info.usage_privileges (
  grantor varchar, grantee varchar, object_catalog varchar, object_schema varchar, object_name varchar, object_type
  varchar, privilege_type varchar, is_grantable varchar
);
create table kg_info.user_defined_types (
  user_defined_type_catalog varchar, user_defined_type_schema varchar, user_defined_type_name varchar,
  user_defined_type_category varchar, is_instantiable varchar, is_final varchar, ordering_form varchar,
  ordering_category varchar, ordering_routine_catalog varchar, ordering_routine_schema varchar,
  ordering_routine_name varchar, reference_type varchar, data_type varchar, character_maximum_length integer,
  character_octet_length integer, character_set_catalog varchar, character_set_schema varchar, character_set_name
  varchar, collation_catalog varchar, collation_schema varchar, collation_name varchar, numeric_precision integer,
  numeric_precision_radix integer, numeric_scale integer, datetime_precision integer, interval_type varchar,
  interval_precision integer, source_dtd_identifier varchar, ref_dtd_identifier varchar
);
create table kg_info.view_column_usage (
  view_catalog varchar, view_schema varchar, view_name varchar, table_catalog varchar, table_schema varchar,
  table_name varchar, column_name varchar
);
create table kg_info.view_table_usage (
  view_catalog varchar, view_schema varchar, view_name varchar, table_catalog varchar, table_schema varchar,
  table_name varchar
);
create table kg_info.views (
  table_catalog varchar, table_schema varchar, table_name varchar, view_definition varchar, check_option varchar,
  is_updatable varchar, is_insertable_into varchar, is_trigger_updatable varchar, is_trigger_deletable varchar,
  is_trigger_insertable_into varchar
);
-- Relations that nothing here is in; clients ask for a few of their columns.
create table kg_pg.pg_amproc (
  oid uinteger, amprocfamily uinteger, amproclefttype uinteger, amprocrighttype uinteger, amprocnum smallint, amproc
  varchar
);
create table kg_pg.pg_authid as from kg_pg.pg_roles;
create table kg_pg.pg_conversion (
  oid uinteger, conname varchar, connamespace uinteger, conowner uinteger, conforencoding integer, contoencoding
  integer, conproc varchar, condefault boolean
);
create table kg_pg.pg_init_privs (
  objoid uinteger, classoid uinteger, objsubid integer, privtype varchar, initprivs varchar[]
);
create table kg_pg.pg_largeobject_metadata (
  oid uinteger, lomowner uinteger, lomacl varchar[]
);
create table kg_pg.pg_seclabel (
  objoid uinteger, classoid uinteger, objsubid integer, provider varchar, label varchar
);
create table kg_pg.pg_statistic (
  starelid uinteger, staattnum smallint, stainherit boolean, stanullfrac real, stawidth integer, stadistinct real
);
create table kg_pg.pg_stats (
  schemaname varchar, tablename varchar, attname varchar, inherited boolean, null_frac real, avg_width integer,
  n_distinct real, most_common_vals varchar[], most_common_freqs real[], histogram_bounds varchar[], correlation real
);
create table kg_pg.pg_subscription_rel (
  srsubid uinteger, srrelid uinteger, srsubstate varchar, srsublsn varchar
);
create table kg_pg.pg_transform (
  oid uinteger, trftype uinteger, trflang uinteger, trffromsql varchar, trftosql varchar
);
create table kg_pg.pg_ts_config (
  oid uinteger, cfgname varchar, cfgnamespace uinteger, cfgowner uinteger, cfgparser uinteger
);
create table kg_pg.pg_ts_config_map (
  mapcfg uinteger, maptokentype integer, mapseqno integer, mapdict uinteger
);
create table kg_pg.pg_ts_dict (
  oid uinteger, dictname varchar, dictnamespace uinteger, dictowner uinteger, dicttemplate uinteger, dictinitoption
  varchar
);
create table kg_pg.pg_ts_parser (
  oid uinteger, prsname varchar, prsnamespace uinteger, prsstart varchar, prstoken varchar, prsend varchar, prsheadline
  varchar, prslextype varchar
);
create table kg_pg.pg_ts_template (
  oid uinteger, tmplname varchar, tmplnamespace uinteger, tmplinit varchar, tmpllexize varchar
);
create table kg_pg.pg_group (
  groname varchar, grosysid uinteger, grolist uinteger[]
);
create table kg_pg.pg_prepared_statements (
  name varchar, statement varchar, prepare_time timestamp, parameter_types varchar[], result_types varchar[], from_sql
  boolean, generic_plans bigint, custom_plans bigint
);
create table kg_pg.pg_prepared_xacts (
  transaction bigint, gid varchar, prepared timestamp, owner varchar, database varchar
);
create table kg_pg.pg_replication_slots (
  slot_name varchar, plugin varchar, slot_type varchar, datoid uinteger, database varchar, temporary boolean, active
  boolean, active_pid integer, xmin bigint, catalog_xmin bigint, restart_lsn varchar, confirmed_flush_lsn varchar
);
create table kg_pg.pg_shadow as from kg_pg.pg_user;
create table kg_pg.pg_timezone_abbrevs (
  abbrev varchar, utc_offset varchar, is_dst boolean
);
create table kg_pg.pg_user_mappings (
  umid uinteger, srvid uinteger, srvname varchar, umuser uinteger, usename varchar, umoptions varchar[]
);
create table kg_pg.pg_stat_sys_tables as from kg_pg.pg_stat_all_tables;
create table kg_pg.pg_stat_all_indexes (
  relid uinteger, indexrelid uinteger, schemaname varchar, relname varchar, indexrelname varchar, idx_scan bigint,
  last_idx_scan timestamp, idx_tup_read bigint, idx_tup_fetch bigint
);
create table kg_pg.pg_stat_user_indexes as from kg_pg.pg_stat_all_indexes;
create table kg_pg.pg_statio_all_tables (
  relid uinteger, schemaname varchar, relname varchar, heap_blks_read bigint, heap_blks_hit bigint, idx_blks_read
  bigint, idx_blks_hit bigint, toast_blks_read bigint, toast_blks_hit bigint, tidx_blks_read bigint, tidx_blks_hit
  bigint
);
create table kg_pg.pg_statio_user_tables as from kg_pg.pg_statio_all_tables;
create table kg_pg.pg_statio_all_indexes (
  relid uinteger, indexrelid uinteger, schemaname varchar, relname varchar, indexrelname varchar, idx_blks_read
  bigint, idx_blks_hit bigint
);
create table kg_pg.pg_statio_user_indexes as from kg_pg.pg_statio_all_indexes;
create table kg_pg.pg_stat_database (
  datid uinteger, datname varchar, numbackends integer, xact_commit bigint, xact_rollback bigint, blks_read bigint,
  blks_hit bigint, tup_returned bigint, tup_fetched bigint, tup_inserted bigint, tup_updated bigint, tup_deleted
  bigint, conflicts bigint, temp_files bigint, temp_bytes bigint, deadlocks bigint, stats_reset timestamp
);
create table kg_pg.pg_stat_replication (
  pid integer, usesysid uinteger, usename varchar, application_name varchar, client_addr varchar, state varchar,
  sync_state varchar
);
create table kg_pg.pg_stat_user_functions (
  funcid uinteger, schemaname varchar, funcname varchar, calls bigint, total_time double, self_time double
);
create table kg_info.column_column_usage (
  table_catalog varchar, table_schema varchar, table_name varchar, column_name varchar, dependent_column varchar
);
create table kg_info.data_type_privileges (
  object_catalog varchar, object_schema varchar, object_name varchar, object_type varchar, dtd_identifier varchar
);
create table kg_info.foreign_data_wrappers (
  foreign_data_wrapper_catalog varchar, foreign_data_wrapper_name varchar, authorization_identifier varchar,
  library_name varchar, foreign_data_wrapper_language varchar
);
create table kg_info.foreign_server_options (
  foreign_server_catalog varchar, foreign_server_name varchar, option_name varchar, option_value varchar
);
create table kg_info.foreign_table_options (
  foreign_table_catalog varchar, foreign_table_schema varchar, foreign_table_name varchar, option_name varchar,
  option_value varchar
);
create table kg_info.role_routine_grants as from kg_info.routine_privileges;
create table kg_info.role_udt_grants as from kg_info.udt_privileges;
create table kg_info.role_usage_grants as from kg_info.usage_privileges;
create table kg_info.sql_features (
  feature_id varchar, feature_name varchar, sub_feature_id varchar, sub_feature_name varchar, is_supported varchar,
  is_verified_by varchar, comments varchar
);
create table kg_info.sql_implementation_info (
  implementation_info_id varchar, implementation_info_name varchar, integer_value integer, character_value varchar,
  comments varchar
);
create table kg_info.sql_sizing (
  sizing_id integer, sizing_name varchar, supported_value integer, comments varchar
);
create table kg_info.triggered_update_columns (
  trigger_catalog varchar, trigger_schema varchar, trigger_name varchar, event_object_catalog varchar,
  event_object_schema varchar, event_object_table varchar, event_object_column varchar
);
create table kg_info.user_mappings (
  authorization_identifier varchar, foreign_server_catalog varchar, foreign_server_name varchar
);
create table kg_info.view_routine_usage (
  table_catalog varchar, table_schema varchar, table_name varchar, specific_catalog varchar, specific_schema varchar,
  specific_name varchar
);
