"""Nanoseconds per number of our exponential and of numba's `np.exp`, on one thread.

python -m bench.exponential
"""

import time

import numpy as np
from nesvm_jit import set_threads
from nesvm_jit.jit import loop
from nesvm_jit.kernels.exp import exp_nonpositive

COUNT, REPEATS = 1 << 16, 100


@loop
def ours(x, out):
    for i in range(len(x)):
        out[i] = exp_nonpositive(x[i])


@loop
def numbas(x, out):
    for i in range(len(x)):
        out[i] = np.exp(x[i])


def nanoseconds(function, x, out) -> float:
    """The least of many times, per number."""
    function(x, out)
    least = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        function(x, out)
        least = min(least, time.perf_counter() - began)
    return least / COUNT * 1e9


def main() -> None:
    set_threads(1)
    for dtype in (np.float64, np.float32):
        x = (-20.0 * np.random.default_rng(0).random(COUNT)).astype(dtype)
        for function in (ours, numbas):
            time_each = nanoseconds(function, x, np.empty_like(x))
            print(f"{np.dtype(dtype)} {function.__name__:6} {time_each:.2f} ns")


if __name__ == "__main__":
    main()
