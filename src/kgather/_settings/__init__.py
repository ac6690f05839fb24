"""What may be asked of a publication: one schema for the command line, dbt's vars and the docs."""
