"""What publishes again: sweeps over methods and k, held-out ratings, a release made again from its original."""
