"""What a release costs: the loss of groups and of tables, and errors of queries and recommenders."""
