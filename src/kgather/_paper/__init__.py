"""The experiments of the papers that kgather implements, run again on ML-100k: the printed beside the found."""
