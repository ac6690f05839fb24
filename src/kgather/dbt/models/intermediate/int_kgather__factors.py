def model(dbt, session):
    """Levels and factors of users and items: (side, code, level, factor)."""
    dbt.config(materialized="table")

    from kgather._steps.learning import learn_preferences

    return learn_preferences(
        dbt.ref("int_kgather__coded_ratings"),
        users=dbt.ref("int_kgather__users"),
        items=dbt.ref("int_kgather__items"),
        scale=dbt.ref("int_kgather__scale"),
        settings=dbt.config.meta_get("settings"),
    )
