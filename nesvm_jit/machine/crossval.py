"""Cross-validation: predict every row by a machine that was trained without its fold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..endings import Outcome, warn_uncertified, worst_status
from ..errors import InputError
from ..jit import interpreted_first
from ..matrix.checks import as_matrix, as_vector
from ..settings import Settings
from .folds import stratified_folds
from .jobs import Job, make_job
from .machine import Machine
from .multiclass import choose
from .parallel import run_chains
from .session import MATRIX_SHARE, Session
from .validation import Fold, Split, Validation, group_folds, make_split
from .warm import check_warm, warm_starts


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Predicted labels in the order of the rows, and the accuracy and largest gap of each fold."""

    predicted: np.ndarray
    folds: np.ndarray
    accuracy: float
    accuracies: list[float]
    gaps: list[float]
    status: str


@interpreted_first
def cross_validate(
    X: Any,
    y: Any,
    n_folds: int = 5,
    *,
    seed: int = 0,
    sample_weight: Any = None,
    class_weight: Mapping[float, float] | str | None = None,
    multiclass: str | None = None,
    classes: Any = None,
    warm: Machine | None = None,
    probability: bool = False,
    **settings: Any,
) -> CrossValidation:
    """Cross-validate `train` with the same arguments, on stratified folds.

    `probability` changes nothing: labels do not depend on calibration. The time limit is for all
    folds together.
    """
    if settings.get("checkpoint") is not None:
        raise InputError("checkpoint is for `train`, not for cross-validation")
    checked = Settings(seed=seed, **settings)
    session = Session(checked)
    job = make_job(as_matrix(X, borrow=True), y, checked, multiclass, classes)
    check_warm(warm, job)
    fold_of = stratified_folds(job.y, n_folds, seed)
    n = len(job.y)
    weight = None if sample_weight is None else as_vector("sample_weight", sample_weight, n)
    class_weight = dict(class_weight) if isinstance(class_weight, Mapping) else class_weight
    splits = [
        make_split(job, fold_of, group, weight, class_weight) for group in group_folds(job, n_folds)
    ]
    found = _run(job, splits, session, warm)
    if session.stop.is_set():
        raise KeyboardInterrupt
    folds = [found[k] for k in range(n_folds)]
    solved = [piece for fold in folds for piece in fold.pieces[0] if piece is not None]
    warn_uncertified([Outcome(piece.status, piece.gap) for piece in solved], checked.tol)
    return _collect(job, fold_of, folds)


def _run(job: Job, splits: list[Split], session: Session, warm: Machine | None) -> dict[int, Fold]:
    """Fit all folds at one C; return them by number."""
    found: dict[int, Fold] = {}
    starts = None if warm is None else warm_starts(warm, job)
    if job.settings.approx is not None:
        _, job = session.within(1.0, job.approximate) or (None, job.unapproximated())
    elif job.settings.kernel != "linear":
        job = session.within(MATRIX_SHARE, job.share_matrix) or job

    def limit(number: int, fold: int, i: int) -> Settings:
        return session.limit(job.settings, fold=fold, problem=number, problems=len(job.problems))

    def keep(fold: Fold) -> None:
        found[fold.number] = fold

    chains = []
    for split in splits:
        validation = Validation(job, split, [job.settings.C], limit, keep, session.stop)
        chains += validation.chains(starts)
    run_chains(chains, session.stop, job.small, job.tiny)
    return found


def _collect(job: Job, fold_of: np.ndarray, folds: list[Fold]) -> CrossValidation:
    predicted, accuracies, gaps, statuses = np.zeros(len(job.y)), [], [], []
    for fold in folds:
        chosen = choose(fold.scores[:, 0], len(job.classes), job.multiclass)
        predicted[fold.rows] = job.classes[chosen]
        accuracies.append(float(np.mean(predicted[fold.rows] == job.y[fold.rows])))
        solved = [piece for piece in fold.pieces[0] if piece is not None]
        gaps.append(max(piece.gap for piece in solved))
        statuses += [piece.status for piece in solved]
    accuracy = float(np.mean(predicted == job.y))
    worst = worst_status(statuses)
    return CrossValidation(predicted, fold_of, accuracy, accuracies, gaps, worst)
