"""The compile policy, and the only room that imports numba.

`policy` has the decorators, `tier` what is interpreted and what compiled, `compiling` and `linked`
what numba is asked to do, `flags` what it may do, `launch` how chunks are run, `threads` on how
many threads, `chunks` how rows are cut, `cache` compiled code on disk, `trusted` the folders it is
taken from,
`environment` what numba is told from outside, `intrinsics` operations that numba has no names for
and `native` what they are compiled to, `memory` how much of it there is.

| environment | meaning |
|---|---|
| NESVM_JIT_TIER=compiled | compile also what would be interpreted |
| NESVM_JIT_CACHE=0 | compile anew in every process |
| NESVM_JIT_CACHE_DIR | where compiled code is kept (else NUMBA_CACHE_DIR, else the user's cache) |
| NUMBA_NUM_THREADS | the most threads `set_threads` can ask for |
| OMP_NUM_THREADS | how many threads kernels run on, unless `set_threads` is called |
| NUMBA_DISABLE_JIT=1, NUMBA_BOUNDSCHECK=1 | plain Python; bounds-checked code |
"""

from .environment import require_usable_environment

require_usable_environment()  # before numba is imported, which would fail

from .chunks import SUM_CELLS, chunk_bounds, chunk_count, partial_sums
from .intrinsics import stream
from .memory import ALWAYS_THERE, memory_bytes
from .policy import (
    Kernel,
    Loop,
    by_layout,
    exact_helper,
    exact_inline,
    exact_kernel,
    exact_loop,
    helper,
    inline,
    kernel,
    loop,
    overload,
    takes,
)
from .threads import (
    Team,
    compile_threads,
    get_threads,
    most_threads,
    one_blas_thread,
    serial_kernels,
    set_threads,
)
from .tier import compiled, interpreted_first

__all__ = [
    "ALWAYS_THERE",
    "SUM_CELLS",
    "Kernel",
    "Loop",
    "Team",
    "by_layout",
    "chunk_bounds",
    "chunk_count",
    "compile_threads",
    "compiled",
    "exact_helper",
    "exact_inline",
    "exact_kernel",
    "exact_loop",
    "get_threads",
    "helper",
    "inline",
    "interpreted_first",
    "kernel",
    "loop",
    "memory_bytes",
    "most_threads",
    "one_blas_thread",
    "overload",
    "partial_sums",
    "serial_kernels",
    "set_threads",
    "stream",
    "takes",
]
