"""Looks at a release with the eyes of who made it: what it costs and what attackers get."""
