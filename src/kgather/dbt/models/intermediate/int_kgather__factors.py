def model(dbt, session):
    """Levels and factors of users and items, and what is shown of items: (side, code, level, factor, charge)."""
    dbt.config(materialized="table")
    meta = dbt.config.get("meta")

    from kgather._steps.learning import learn_preferences

    return learn_preferences(
        dbt.ref("int_kgather__coded_ratings"),
        users=dbt.ref("int_kgather__users"),
        items=dbt.ref("int_kgather__items"),
        scale=dbt.ref("int_kgather__scale"),
        noise_key=dbt.ref("int_kgather__noise_key"),
        settings=meta["settings"],
        # As the last run left it: named and not referred to, as it is made of this.
        last=lambda: session.table(f'"{dbt.this.database}"."{dbt.this.schema}"."int_kgather__item_factors"'),
    )
