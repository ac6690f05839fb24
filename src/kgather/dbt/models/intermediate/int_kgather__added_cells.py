def model(dbt, session):
    """Cells to add until every set of items that some user rated is shown by enough groups: (group_id, item_id)."""
    dbt.config(materialized="table")

    from kgather._steps.coverage import cells_to_add

    return cells_to_add(
        dbt.ref("int_kgather__cells"),
        dbt.ref("int_kgather__groups"),
        dbt.ref("int_kgather__shown_items"),
        dbt.ref("int_kgather__coded_ratings"),
        settings=dbt.config.meta_get("settings"),
    )
