def model(dbt, session):
    """What is shown of each user's personal attributes: (user_id, a text for each column). It is secret."""
    dbt.config(materialized="table")
    meta = dbt.config.get("meta")

    from kgather._steps.personal import show_personal

    return show_personal(
        dbt.ref("stg_kgather__user_attributes"),
        dbt.ref("int_kgather__groups"),
        settings=meta["settings"],
    )
