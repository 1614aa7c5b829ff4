"""The exponential of numbers that are not positive, in both precisions, for loops that vectorise.

numba calls the C library for every number where Intel's SVML is not installed, which does not
vectorise (docs/design.md has the figures).
"""

import numpy as np

from ..jit import exact_inline, overload

# Taylor polynomials on |r| ≤ ln2/2: the first term left out is below half a unit in the last place.
_LOG2E = 1.4426950408889634
_LN2_HI, _LN2_LO = 0.693145751953125, 1.42860682030941723212e-6
_MAGIC64, _MAGIC32 = 6755399441055744.0, 12582912.0  # 1.5·2^52, 1.5·2^23: adding one rounds


@exact_inline
def _exp64(x):
    """e^x = 2^k e^r with k = round(x/ln2), for x ≤ 0; below −708 zero."""
    if not x >= -708.0:
        return 0.0
    t = x * _LOG2E + _MAGIC64
    k = t - _MAGIC64
    r = (x - k * _LN2_HI) - k * _LN2_LO
    e = 1.0 / 6227020800.0
    e = e * r + 1.0 / 479001600.0
    e = e * r + 1.0 / 39916800.0
    e = e * r + 1.0 / 3628800.0
    e = e * r + 1.0 / 362880.0
    e = e * r + 1.0 / 40320.0
    e = e * r + 1.0 / 5040.0
    e = e * r + 1.0 / 720.0
    e = e * r + 1.0 / 120.0
    e = e * r + 1.0 / 24.0
    e = e * r + 1.0 / 6.0
    e = e * r + 0.5
    e = e * r + 1.0
    e = e * r + 1.0
    # adding the low bits of t (that is k) to the exponent of e multiplies it by 2^k
    return np.int64(np.float64(e).view(np.int64) + (np.float64(t).view(np.int64) << 52)).view(
        np.float64
    )


@exact_inline
def _exp32(x):
    """The same in single precision; below −87 zero."""
    if not x >= np.float32(-87.0):
        return np.float32(0.0)
    t = np.float32(x * np.float32(_LOG2E) + np.float32(_MAGIC32))
    k = np.float32(t - np.float32(_MAGIC32))
    r = np.float32((x - k * np.float32(_LN2_HI)) - k * np.float32(_LN2_LO))
    e = np.float32(1.0 / 5040.0)
    e = e * r + np.float32(1.0 / 720.0)
    e = e * r + np.float32(1.0 / 120.0)
    e = e * r + np.float32(1.0 / 24.0)
    e = e * r + np.float32(1.0 / 6.0)
    e = e * r + np.float32(0.5)
    e = e * r + np.float32(1.0)
    e = e * r + np.float32(1.0)
    bits = np.float32(e).view(np.int32) + np.int32(np.float32(t).view(np.int32) << np.int32(23))
    return np.int32(bits).view(np.float32)


def exp_nonpositive(x):
    """e^x for x ≤ 0 in the precision of x: compiled to a form that vectorises, interpreted in one
    step, which in single precision NumPy is not as accurate in."""
    least = -87.0 if isinstance(x, np.float32) else -708.0
    return type(x)(np.exp(np.float64(x)) if x >= least else 0.0)


@overload(exp_nonpositive)
def _exp_nonpositive(x):
    if str(x) == "float32":
        return lambda x: _exp32(x)
    return lambda x: _exp64(x)
