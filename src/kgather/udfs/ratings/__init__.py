"""Ratings as kernels read them: the sparse matrix, tables of artifacts, ratings that are held out, equal rows."""
