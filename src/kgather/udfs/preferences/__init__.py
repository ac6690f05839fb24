"""What users like: the solvers that learn it, and the vectors in which users are compared."""
