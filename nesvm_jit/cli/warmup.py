"""`nesvm-jit warmup`."""

import time

import click

from .options import quiet, threads


@click.command()
@threads
@quiet
def warmup(quiet):
    """Compile every kernel once and keep the code, so that later runs start at once.

    \b
    The code is kept in the user's cache folder; NESVM_JIT_CACHE_DIR names another,
    for example inside a container image:

    \b
      nesvm-jit warmup
      NESVM_JIT_CACHE_DIR=/opt/nesvm-cache nesvm-jit warmup
    """
    from ..codecache import cache_folder, caching_enabled
    from ..warm import steps

    start = time.perf_counter()
    todo = list(steps())
    for k, (name, run) in enumerate(todo, 1):
        began = time.perf_counter()
        run()
        if not quiet:
            click.echo(f"{k:3d}/{len(todo)}  {name:32s} {time.perf_counter() - began:6.2f} s")
    if not quiet:
        folder = cache_folder() if caching_enabled() else None
        where = f"kept in {folder}" if folder else "not kept: caching is off or has no folder"
        click.echo(f"{len(todo)} kernels ready in {time.perf_counter() - start:.1f} s, {where}")
