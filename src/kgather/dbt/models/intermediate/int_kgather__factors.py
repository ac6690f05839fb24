def model(dbt, session):
    """Levels and factors of users and items: (side, code, level, factor)."""
    dbt.config(materialized="table")

    from kgather._steps.steps import learn_preferences

    return learn_preferences(
        dbt.ref("int_kgather__coded_ratings"),
        users=dbt.ref("int_kgather__users"),
        items=dbt.ref("int_kgather__items"),
        scale=dbt.ref("int_kgather__scale"),
        solver=dbt.config.meta_get("solver"),
        solver_options=dbt.config.meta_get("solver_options"),
        rank=dbt.config.meta_get("rank"),
        seed=dbt.config.meta_get("seed"),
        threads=dbt.config.meta_get("threads"),
    )
