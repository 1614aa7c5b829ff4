"""Calls of the library that may end uncertified: it warns of that once, and only then."""

import warnings
from functools import wraps

import nesvm_jit
from nesvm_jit import NotCertifiedWarning


def statuses_of(result):
    """The statuses of a solution, a cross-validation, a machine, or a path with its machine."""
    if hasattr(result, "problems"):
        return [p["status"] for p in result.problems]
    if hasattr(result, "fits"):
        machine = [] if result.machine is None else statuses_of(result.machine)
        return [fit.status for fit in result.fits.values()] + machine
    return [result.status]


def watched(function):
    """The same function, which is seen to warn once where its result is not certified, and only
    there. Warnings of other kinds are handed on."""

    @wraps(function)
    def call(*args, **given):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", NotCertifiedWarning)
            result = function(*args, **given)
        others = [w for w in said if w.category is not NotCertifiedWarning]
        for w in others:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
        certified = {*statuses_of(result)} == {"converged"}
        assert len(said) - len(others) == (not certified)
        return result

    return call


solve = watched(nesvm_jit.solve)
train = watched(nesvm_jit.train)
cross_validate = watched(nesvm_jit.cross_validate)
path = watched(nesvm_jit.path)
