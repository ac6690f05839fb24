"""A publication on Spark: ratings, ids and the map stay on the executors, and the release is made of aggregates."""
