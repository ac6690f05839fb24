def model(dbt, session):
    """The mean preference of each group, those farthest from the middle drawn in: (group_id, level, factor)."""
    dbt.config(materialized="table")
    meta = dbt.config.get("meta")

    from kgather._steps.group_vectors import shown_vectors

    return shown_vectors(
        dbt.ref("int_kgather__group_means"),
        dbt.ref("int_kgather__factors"),
        settings=meta["settings"],
    )
