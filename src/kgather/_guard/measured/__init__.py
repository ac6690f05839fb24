"""Mode measured: everything told about people is computed from stored noisy measurements."""
