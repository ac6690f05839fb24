def model(dbt, session):
    """What is shown of each user's shared personal attributes beside artifacts: (user_id, a text for each). Secret."""
    dbt.config(materialized="table")
    meta = dbt.config.get("meta")

    from kgather._steps.personal import show_personal

    return show_personal(
        dbt.ref("stg_kgather__user_attributes"),
        dbt.ref("int_kgather__groups"),
        settings=meta["settings"],
        shared=True,
    )
