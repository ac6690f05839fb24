"""Users into groups: one module for each method of gathering, and what several methods need."""
