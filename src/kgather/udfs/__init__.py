"""Numerical kernels with Arrow edges: what is iterative and would not fit in SQL."""
