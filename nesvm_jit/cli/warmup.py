"""`nesvm-jit warmup`."""

import time

import click

from .options import quiet, threads
from .progress import Progress


@click.command()
@threads
@quiet
def warmup(quiet: bool) -> None:
    """Compile every kernel once and keep the code, so that later runs start at once.

    \b
    The code is kept in the user's cache folder. NESVM_JIT_CACHE_DIR names another folder, for
    example inside a container image.

    \b
    Examples:
      nesvm-jit warmup
      NESVM_JIT_CACHE_DIR=/opt/nesvm-cache nesvm-jit warmup
    """
    from ..jit.cache import cache_folders, caching_enabled
    from .compile_ahead import steps

    start = time.perf_counter()
    todo = list(steps())
    with Progress(None, wanted=False) as kernel_compiled:
        for k, (name, run) in enumerate(todo, 1):
            began = time.perf_counter()
            run()
            kernel_compiled({})
            if not quiet:
                click.echo(f"{k:3d}/{len(todo)}  {name:32s} {time.perf_counter() - began:6.2f} s")
    if not quiet:
        folder = cache_folders()[0] if caching_enabled() else None
        where = f"kept in {folder}" if folder else "not kept: caching is off or has no folder"
        click.echo(f"{len(todo)} kernels ready in {time.perf_counter() - start:.1f} s, {where}")
