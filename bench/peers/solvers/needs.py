"""Why a solver cannot run a task, and solvers that run only in the paper's experiments."""

import importlib.util
from types import SimpleNamespace

from ..tasks import SAMPLED


def lacking(
    package: str,
    task,
    *,
    models=("csvm",),
    kernels=("linear",),
    bias=True,
    from_file=False,
    slow=False,
) -> str | None:
    """None, or what the module `package` does not do or that it is not installed.

    Slow solvers are spared some costs, all but ours the tasks that grow.
    """
    if package != "nesvm_jit" and (task.grows or (slow and task.C not in SAMPLED)):
        return "spared"
    if task.from_file != from_file or task.kernel not in kernels or task.model not in models:
        return "another problem"
    if task.bias and not bias:
        return "no bias"
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed"
    return None


def paper_solver(
    name: str, package: str, setting: float, missing, prepare, certified: bool = False
) -> SimpleNamespace:
    """A solver with one setting, in the form of the other modules."""
    return SimpleNamespace(
        NAME=name,
        PACKAGE=package,
        SETTINGS=(setting,),
        PAPER=setting,
        CERTIFIED=certified,
        missing=missing,
        prepare=prepare,
    )
