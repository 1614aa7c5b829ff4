"""Solvers: each yields evaluations of a problem, which one driver records and ends."""
