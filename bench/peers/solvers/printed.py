"""NESVM and homotopy NESVM as printed in the paper: μ = 5, ε = 1e-3, w⁰ = w⋆ = 0, no other rule."""

from . import ours
from .needs import lacking, paper_solver

PAPER = 0.0  # no tolerance: ε decides
LONGEST = 20.0


def _solver(name: str, engine: str):
    def missing(task) -> str | None:
        return None if task.paper and not lacking("nesvm_jit", task, kernels=ours.KERNELS) else "no"

    def prepare(problem):
        return ours.prepare(problem, solver=engine, epsilon=1e-3, time_limit=LONGEST)

    return paper_solver(name, "nesvm-jit", PAPER, missing, prepare, certified=True)


NESVM = _solver("NESVM", "nesvm")  # μ = 5 is its default
HOMOTOPY = _solver("homotopy NESVM", "homotopy")  # from 5 to 0.05
