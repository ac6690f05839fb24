"""The steps of the pipeline that SQL cannot say: what the dbt Python models call."""
