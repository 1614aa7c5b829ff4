"""Pegasos and the cutting plane of SVM-Perf, as compact implementations of our own."""

from scipy.sparse import csr_matrix

from ...reference.cutting_plane import cutting_plane
from ...reference.pegasos import pegasos
from ..judge import Found
from .needs import paper_solver

PAPER = 1e-3


def _solver(name: str, run):
    def missing(task) -> str | None:
        fits = task.paper and task.kernel == "linear" and task.model == "csvm" and not task.bias
        return None if fits else "another problem"

    def prepare(problem):
        X = csr_matrix(problem.X)
        return lambda epsilon: Found(run(X, problem.y, problem.task.C, epsilon))

    return paper_solver(name, "nesvm-jit", PAPER, missing, prepare)


PEGASOS = _solver("Pegasos", pegasos)
CUTTING_PLANE = _solver("cutting plane", cutting_plane)
