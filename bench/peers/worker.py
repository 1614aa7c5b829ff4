"""Time one solver on one task, in a process of its own that is ended when it hangs.

A fresh process keeps the threads that one library leaves spinning away from the next.
"""

import multiprocessing
import os
import time
import warnings

from ..common import write_whole
from .curves import median
from .datasets import label, load
from .judge import Problem, objective
from .solvers import BY_NAME
from .store import FOLDER
from .tasks import Task

LONGEST = 60.0  # seconds without a point, with loading, compiling and warming up
BUDGET = 6.0  # seconds of fits on a task, repeats not counted: then no tighter setting is tried
LONGEST_NOTICE = 120  # letters of an error
REPEATS = ((0.1, 5), (1.0, 3))  # so many of fits shorter than this; one of longer ones


def read(task: Task) -> Problem:
    """The data of a task, written out as text too when it starts from a file."""
    X, y = load(task.data)
    if not task.from_file:
        return Problem(task, X, y)
    from nesvm_jit import write_libsvm

    path = FOLDER / "files" / f"{label(task.data).replace(' ', '-')}.txt"
    if not path.is_file():
        write_whole(path, lambda f: write_libsvm(f, X, y))
    return Problem(task, X, y, path)


def timed(fit, setting):
    """(seconds, what was found), found() being called after the clock has stopped."""
    start = time.perf_counter()
    found = fit(setting)
    seconds = time.perf_counter() - start
    return seconds, found() if callable(found) else found


def point(problem: Problem, fit, setting, most: int) -> dict | None:
    """The judged result of a setting and the seconds of its repeats; None if it does not apply."""
    first, found = timed(fit, setting)
    if found is None:
        return None
    repeats = min(most, next((count for limit, count in REPEATS if first < limit), 1))
    seconds = [first, *(timed(fit, setting)[0] for _ in range(repeats - 1))]
    value = objective(problem, found)
    return {"setting": setting, "seconds": seconds, "objective": value, "bound": found.bound}


def curve(problem: Problem, solver):
    """The points of a solver from loose to tight, until its time is spent."""
    fit = solver.prepare(problem)
    once = getattr(solver, "ONCE", False)
    settings = (solver.PAPER,) if problem.task.paper else solver.SETTINGS
    if not once:
        fit(settings[0])
    spent = 0.0
    for setting in settings:
        if spent > BUDGET:
            return
        found = point(problem, fit, setting, 1 if once else REPEATS[0][1])
        if found:
            spent += median(found)
            yield found


def _work(pipe, solver_name: str, task: Task) -> None:
    """Send every point, then the end: None, or an error."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    warnings.simplefilter("ignore")
    try:
        for found in curve(read(task), BY_NAME[solver_name]):
            pipe.send(found)
        pipe.send(None)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}"[:LONGEST_NOTICE])


def measure(solver, task: Task) -> tuple[list[dict], str | None]:
    """The points of a solver on a task, and why there are not more if it failed or hung."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(theirs, solver.NAME, task), daemon=True)
    process.start()
    theirs.close()
    points: list[dict] = []
    try:
        longest = getattr(solver, "WAIT", LONGEST)
        while mine.poll(longest):
            message = mine.recv()
            if not isinstance(message, dict):
                return points, message
            points.append(message)
        return points, f"no answer in {longest:g} s"
    except EOFError:
        process.join()
        return points, f"the process ended with code {process.exitcode}"
    finally:
        process.kill()
        process.join()
