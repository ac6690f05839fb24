{{ config(
  materialized="view",
  enabled=kgather.setting("items") == "kgather_loaded_items"
) }}
-- What the command line loaded of the catalogue: one row an item.
select item_id from loaded.items
