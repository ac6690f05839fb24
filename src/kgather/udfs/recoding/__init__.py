"""Classes of rows that look the same once their columns are generalized: codes in, classes out."""
