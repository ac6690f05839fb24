def model(dbt, session):
    """The secret map in codes, with the random names that the release knows: (user_code, group_id, pseudonym)."""
    dbt.config(materialized="table")

    from kgather.steps import gather_users

    return gather_users(
        dbt.ref("int_kgather__factors"),
        method=dbt.config.meta_get("method"),
        k=dbt.config.meta_get("k"),
        metric=dbt.config.meta_get("metric"),
        bisection_tries=dbt.config.meta_get("bisection_tries"),
        seed=dbt.config.meta_get("seed"),
    )
