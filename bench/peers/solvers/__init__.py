"""One module per solver.

NAME; PACKAGE, whose version is recorded; SETTINGS from loose to tight (words where they name
methods: then the fastest counts); CERTIFIED, whether it proves its accuracy; `missing(task)`, why
it cannot run, or None; `prepare(problem)` -> `fit(setting)` -> `Found`, or a function that makes
one after the clock has stopped.
"""

from . import (
    cli,
    compact,
    highs,
    joachims,
    liblinear,
    liblinear_file,
    libsvm,
    linear_svc,
    linear_svc_file,
    onedal,
    ours,
    printed,
    reference,
    rehline,
    ridge,
    sgd,
    skglm,
    snapml,
    svc,
    thunder,
)

SOLVERS = (
    ours,
    liblinear,
    linear_svc,
    sgd,
    snapml,
    skglm,
    rehline,
    ridge,
    highs,
    cli,
    liblinear_file,
    linear_svc_file,
    libsvm,
    svc,
    onedal,
    thunder,
)
REFERENCE = reference
PAPER_SOLVERS = (
    printed.NESVM,
    printed.HOMOTOPY,
    ours,
    libsvm,
    liblinear,
    compact.PEGASOS,
    compact.CUTTING_PLANE,
    joachims.SVM_LIGHT,
    joachims.SVM_PERF,
)
BY_NAME = {solver.NAME: solver for solver in (REFERENCE, *SOLVERS, *PAPER_SOLVERS)}
