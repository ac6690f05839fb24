def model(dbt, session):
    """Cells to add until every set of items that some user rated is shown by enough groups: (group_id, item_id)."""
    dbt.config(materialized="table")
    meta = dbt.config.get("meta")

    from kgather._steps.coverage import cells_to_add

    return cells_to_add(
        dbt.ref("int_kgather__cells"),
        dbt.ref("int_kgather__groups"),
        dbt.ref("int_kgather__shown_items"),
        dbt.ref("int_kgather__coded_ratings"),
        settings=meta["settings"],
    )
