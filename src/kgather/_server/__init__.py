"""The guard's server: PostgreSQL's protocol and Arrow Flight SQL, asking one guard."""
