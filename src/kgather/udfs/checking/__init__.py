"""Whether a table keeps a model of anonymity: what is too costly for SQL."""
