"""What is done with a release afterwards: publishing again for sweeps and held-out ratings, others put beside it."""
