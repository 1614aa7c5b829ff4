"""Peers and ours to the same primal suboptimality: `python -m bench.peers`.

`tasks` lists the problems, `datasets` has a file per data set and `solvers` a file per solver.
`worker` times one solver on one task in a process of its own, `judge` alone says how good a
result is, `store` keeps the measurements as JSON, `curves` reads times off them, and `page`,
`targets` and `plots` write docs/benchmarks.md.
"""
