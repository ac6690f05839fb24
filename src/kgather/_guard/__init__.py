"""How the query guard works inside; what users may import is in `kgather.guard`."""
