def model(dbt, session):
    """The noise of each item, a function of the key and the ratings: (item_code, level, factor, raters)."""
    dbt.config(materialized="table")

    from kgather._steps.noise import draw_noise

    return draw_noise(
        dbt.ref("int_kgather__noise_key"),
        dbt.ref("int_kgather__items"),
        settings=dbt.config.meta_get("settings"),
    )
