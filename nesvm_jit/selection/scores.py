"""Scores of predictions, as functions of labels and decision values."""

import numpy as np

from ..machine.multiclass import choose, ovo_decision


def all_scores(
    truth: np.ndarray, scores: np.ndarray, classes: np.ndarray, multiclass: str
) -> dict[str, float]:
    """Return all `SCORES` of decision values (a column per sub-problem) for rows with labels
    `truth`.

    For two classes, F1 and AUC are those of the larger label. For more, they are means over the
    classes; the AUC of a class against the rest is that of its own score, which is one-versus-one
    its number of votes, with summed scores to break ties.
    """
    k = len(classes)
    chosen = classes[choose(scores, k, multiclass)]
    if k == 2:
        larger = classes.max()
        values = scores[:, 0] if classes[0] == larger else -scores[:, 0]
        f1, area = f1_of(truth, chosen, larger), auc(truth == larger, values)
    else:
        by_class = ovo_decision(scores, k) if multiclass == "ovo" else scores
        f1, area = macro_f1(truth, chosen), macro_auc(truth, by_class, classes)
    return {
        "accuracy": float(np.mean(chosen == truth)),
        "balanced_accuracy": balanced_accuracy(truth, chosen),
        "f1": f1,
        "auc": area,
    }


def balanced_accuracy(truth: np.ndarray, chosen: np.ndarray) -> float:
    """Return the share of right rows of each class in `truth`, averaged over the classes."""
    return float(np.mean([np.mean(chosen[truth == label] == label) for label in np.unique(truth)]))


def f1_of(truth: np.ndarray, chosen: np.ndarray, label: float) -> float:
    """Return 2 tp / (2 tp + fp + fn) of a class; 0 if no row has or gets its label."""
    has, gets = truth == label, chosen == label
    total = np.count_nonzero(has) + np.count_nonzero(gets)
    return 2.0 * np.count_nonzero(has & gets) / total if total else 0.0


def macro_f1(truth: np.ndarray, chosen: np.ndarray) -> float:
    """Return the mean F1 of all classes that occur."""
    labels = np.union1d(truth, chosen)
    return float(np.mean([f1_of(truth, chosen, label) for label in labels]))


def auc(positive: np.ndarray, values: np.ndarray) -> float:
    """Return the chance that a positive row has a larger value than a negative one, with equal
    values counted as half; NaN if there are no rows of both kinds."""
    n_pos = int(np.count_nonzero(positive))
    n_neg = len(positive) - n_pos
    if not n_pos or not n_neg:
        return float("nan")
    order = np.argsort(values)  # equal values in any order
    ranked = values[order]
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]) + 1, len(ranked))
    starts = np.append(0, ends[:-1])
    rank = np.repeat(0.5 * (starts + ends + 1), ends - starts)  # equal values share the mean rank
    total = float(rank[positive[order]].sum())
    return (total - 0.5 * n_pos * (n_pos + 1)) / (n_pos * float(n_neg))


def macro_auc(truth: np.ndarray, by_class: np.ndarray, classes: np.ndarray) -> float:
    """Return the AUC of a class against the rest, averaged over the classes that occur."""
    areas = [auc(truth == label, by_class[:, i]) for i, label in enumerate(classes)]
    known = [a for a in areas if a == a]
    return float(np.mean(known)) if known else float("nan")
