"""LIBSVM's coefficients, which scikit-learn and oneDAL keep too, as machines of pairs."""

import numpy as np
from scipy.sparse import issparse

from ..judge import KernelFound, Part


def of_pairs(labels, support, of_class, coefs, intercepts, n: int) -> KernelFound:
    """Class a against b > a: support vectors of a have their coefficient in row b − 1, those of b
    in row a. `of_class` numbers the class of each support vector; the score speaks for a."""
    parts, k = [], 0
    for a in range(len(labels)):
        for b in range(a + 1, len(labels)):
            beta = np.zeros(n)
            for mine, row in ((a, b - 1), (b, a)):
                rows = of_class == mine
                beta[support[rows]] = coefs[row][rows]
            parts.append(Part(float(labels[a]), float(labels[b]), beta, float(intercepts[k])))
            k += 1
    return KernelFound(parts)


def of_estimator(model, n: int) -> KernelFound:
    """The same from an SVC, whose score of two classes speaks for the second."""
    of_class = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    sign = -1.0 if len(model.classes_) == 2 else 1.0
    coefs = model.dual_coef_.toarray() if issparse(model.dual_coef_) else model.dual_coef_
    coefs = sign * np.asarray(coefs)
    intercepts = sign * np.ravel(model.intercept_)
    return of_pairs(model.classes_, model.support_, of_class, coefs, intercepts, n)
