"""Arrow Flight SQL beside the PostgreSQL wire: the same service, results as Arrow."""
