def model(dbt, session):
    """Noise in the counts of raters, a function of the key and the ratings: (item_code, raters)."""
    dbt.config(materialized="table")

    from kgather._steps.noise import draw_noise

    return draw_noise(
        dbt.ref("int_kgather__noise_key"), dbt.ref("int_kgather__users"), dbt.ref("int_kgather__items")
    )
