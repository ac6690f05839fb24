"""What all kernels share: reading Arrow columns, random numbers by hash, selection and order, options, threads."""
