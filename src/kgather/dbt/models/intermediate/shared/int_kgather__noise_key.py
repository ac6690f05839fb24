def model(dbt, session):
    """The key of all noise, (key): drawn by the first run and kept by all later ones, as noise drawn anew averages out."""
    dbt.config(materialized="table")

    from kgather._steps.noise import noise_key

    return noise_key(session, str(dbt.this))
