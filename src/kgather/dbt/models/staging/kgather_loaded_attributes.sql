{{ config(
  materialized="view",
  enabled=kgather.setting("user_attributes") == "kgather_loaded_attributes"
) }}
-- What the command line loaded of users: one row a user.
select * from loaded.user_attributes
