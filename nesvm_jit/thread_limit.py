"""The limit that threadpoolctl sets for the threads of kernels.

`threadpoolctl.threadpool_limits(1)` also limits the kernels of this package. threadpoolctl looks
for known libraries among those that are loaded; since the package has none, the kernels are
registered under the name of NumPy's.
"""

import math

from threadpoolctl import LibController, register

limit: float = math.inf  # number of threads that kernels may use


class _Kernels(LibController):  # type: ignore[misc]
    """The threads of kernels, as threadpoolctl sees them."""

    user_api = "nesvm_jit"
    internal_api = "nesvm_jit"
    filename_prefixes = ("_multiarray_umath",)

    def get_num_threads(self) -> int | None:
        return None if math.isinf(limit) else int(limit)

    def set_num_threads(self, num_threads: int | None) -> None:
        global limit
        limit = math.inf if num_threads is None else num_threads

    def get_version(self) -> None:
        return None


register(_Kernels)
