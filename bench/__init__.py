"""Benchmarks: each module is a command, `python -m bench.read`, that writes a page of docs/."""
