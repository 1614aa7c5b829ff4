"""Pegasos and the cutting plane of SVM-Perf, as compact implementations of our own."""

from types import SimpleNamespace

from scipy.sparse import csr_matrix

from ...reference.cutting_plane import cutting_plane
from ...reference.pegasos import pegasos
from ..judge import Found

PAPER = 1e-3


def _solver(name: str, run) -> SimpleNamespace:
    def missing(task) -> str | None:
        fits = task.paper and task.kernel == "linear" and task.model == "csvm" and not task.bias
        return None if fits else "another problem"

    def prepare(problem):
        X = csr_matrix(problem.X)
        return lambda epsilon: Found(run(X, problem.y, problem.task.C, epsilon))

    return SimpleNamespace(
        NAME=name,
        PACKAGE="nesvm-jit",
        SETTINGS=(PAPER,),
        PAPER=PAPER,
        CERTIFIED=False,
        missing=missing,
        prepare=prepare,
    )


PEGASOS = _solver("Pegasos", pegasos)
CUTTING_PLANE = _solver("cutting plane", cutting_plane)
