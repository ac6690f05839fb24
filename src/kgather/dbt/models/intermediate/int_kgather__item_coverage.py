def model(dbt, session):
    """The fewest groups of the release that show a set of items which some user rated: one row (least_groups)."""
    dbt.config(materialized="table")
    meta = dbt.config.get("meta")

    from kgather._steps.coverage import item_coverage

    return item_coverage(
        dbt.ref("kgather__ratings"),
        dbt.ref("int_kgather__groups"),
        dbt.ref("int_kgather__shown_items"),
        dbt.ref("int_kgather__coded_ratings"),
        settings=meta["settings"],
    )
