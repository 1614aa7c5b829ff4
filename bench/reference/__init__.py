"""Compact implementations of solvers that the paper compares with and that have no package."""
