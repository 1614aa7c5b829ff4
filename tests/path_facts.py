"""The facts of a path over costs, made up as `PathResult.facts()` has them."""

import numpy as np

FOLDS = 5


def path_facts(gammas=(None,), costs=(0.01, 0.1, 1.0, 10.0, 100.0), tol=1e-3, **changes):
    rng = np.random.default_rng(0)
    kernel = "linear" if gammas == (None,) else "rbf"
    cells = []
    for g, gamma in enumerate(gammas):
        for k, C in enumerate(costs):
            height = 0.85 - 0.02 * (k - 2) ** 2 - 0.03 * (g - 1) ** 2
            accuracy = (height + 0.01 * rng.standard_normal(FOLDS)).tolist()
            cells.append(
                {
                    "C": C,
                    "gamma": gamma,
                    "scores": {
                        "accuracy": accuracy,
                        "balanced_accuracy": [a - 0.02 for a in accuracy],
                        "f1": [a - 0.05 for a in accuracy],
                        "auc": None,
                    },
                    "seconds": (0.02 * 1.6**k * rng.uniform(0.8, 1.2, FOLDS)).tolist(),
                    "gaps": (tol * rng.uniform(0.02, 1.0, FOLDS)).tolist(),
                    "certified": [True] * FOLDS,
                    "n_support": [int(2000 / (1 + k)) + int(v) for v in rng.integers(0, 40, FOLDS)],
                    "n_nonzero": [100 + 2 * k] * FOLDS if kernel == "linear" else None,
                    "iterations": [10 + k] * FOLDS,
                    "status": ["converged"] * FOLDS,
                }
            )
    means = [float(np.mean(c["scores"]["accuracy"])) for c in cells]
    best = int(np.argmax(means))

    def chosen(at):
        error = float(np.std(cells[at]["scores"]["accuracy"], ddof=1) / np.sqrt(FOLDS))
        where = {"C": cells[at]["C"], "gamma": cells[at]["gamma"]}
        return where | {"mean": means[at], "std_error": error}

    facts = {
        "model": "csvm",
        "kernel": kernel,
        "solver": "auto",
        "n_samples": 3000,
        "n_features": 123,
        "classes": [1.0, -1.0],
        "bias": True,
        "tol": tol,
        "folds": FOLDS,
        "repeats": 1,
        "seed": 0,
        "scoring": "accuracy",
        "costs": list(costs),
        "gammas": list(gammas),
        "cells": cells,
        "best": chosen(best),
        "one_se": chosen(max(0, best - 1)),
        "chosen": "best",
        "refit": None,
        "test": {"n_samples": 1000, "accuracy": 0.842},
        "seconds": {"read": 0.03, "fits": 2.4, "refit": 0.1, "total": 2.53},
        "status": "converged",
    }
    return facts | changes
