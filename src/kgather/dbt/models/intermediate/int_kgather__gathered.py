def model(dbt, session):
    """The secret map in codes, with the random names that the release knows.

    (user_code, group_id, lineage, pseudonym, bin, unchanged): `lineage` is the id that a group was formed with, `bin` is
    null unless the method has bins, `unchanged` unless it knows groups that need no change.
    """
    dbt.config(materialized="table")
    meta = dbt.config.get("meta")

    from kgather._steps.groups import gather_users

    return gather_users(
        dbt.ref("int_kgather__coded_ratings"),
        dbt.ref("int_kgather__factors"),
        artifact_ratings=dbt.ref("int_kgather__artifact_ratings"),
        artifact_categories=dbt.ref("int_kgather__artifact_categories"),
        levels=dbt.ref("int_kgather__user_levels"),
        sensitive_values=dbt.ref("int_kgather__sensitive_values"),
        items=dbt.ref("int_kgather__items"),
        scale=dbt.ref("int_kgather__scale"),
        stayed=dbt.ref("int_kgather__stayed"),
        origins=dbt.ref("int_kgather__origins"),
        settings=meta["settings"],
    )
