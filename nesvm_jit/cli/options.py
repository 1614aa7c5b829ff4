"""Options that several commands share."""

import json as _json
import math
import os
from collections.abc import Callable

import click

MODELS = ("csvm", "lpsvm", "lssvm")
KERNELS = {"linear": "0", "poly": "1", "rbf": "2", "precomputed": "4"}
SOLVERS = ("auto", "nesvm", "homotopy", "newton", "coordinate")


def _set_threads(ctx, param, value):
    if value is not None:
        from ..jit import set_threads

        set_threads(value)
    return value


threads = click.option(
    "--threads",
    type=click.IntRange(min=1),
    callback=_set_threads,
    expose_value=False,
    help="Threads to run on (default: all cores).",
)
stream = click.option(
    "--stream",
    is_flag=True,
    help="Leave an on-disk matrix on disk and read it in every pass, even if it would fit.",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on standard output, no text."
)


class KernelName(click.Choice):
    """A kernel by its name or by LIBSVM's number."""

    name = "kernel"

    def __init__(self):
        super().__init__(list(KERNELS))

    def convert(self, value, param, ctx):
        names = {number: name for name, number in KERNELS.items()}
        return super().convert(names.get(value, value), param, ctx)


class Gamma(click.ParamType):
    """A number, or `scale`."""

    name = "float|scale"

    def convert(self, value, param, ctx):
        if value in ("scale", "auto"):
            return value
        return click.FLOAT.convert(value, param, ctx)


def several(*options: Callable) -> Callable:
    """Decorators as one, shown in the order given."""

    def decorate(function):
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


kernel = several(
    click.option(
        "-s",
        "--model",
        type=click.Choice(MODELS),
        default="csvm",
        show_default=True,
        help="C-SVM: squared norm and hinge loss; LP-SVM: l1 norm and hinge loss; "
        "LS-SVM: squared norm and squared loss.",
    ),
    click.option(
        "-t",
        "--kernel",
        type=KernelName(),
        default="linear",
        show_default=True,
        help="linear; poly (gamma*u'v + coef0)^degree; rbf exp(-gamma*|u-v|^2); precomputed. "
        "LIBSVM's numbers 0, 1, 2, 4 are understood too.",
    ),
    click.option("-d", "--degree", type=int, default=3, show_default=True, help="Degree of poly."),
    click.option(
        "-r", "--coef0", type=float, default=0.0, show_default=True, help="Constant of poly."
    ),
    click.option(
        "-m",
        "--cache-mb",
        type=float,
        help="Memory for kernel rows in MB (default: a quarter of the machine's).",
    ),
    click.option(
        "--approx",
        type=click.Choice(["nystroem"]),
        help="Approximate poly or rbf by landmarks: a linear machine, for many rows.",
    ),
    click.option(
        "--landmarks",
        type=click.IntRange(min=1),
        metavar="M",
        help="Rows that --approx takes as landmarks (default: 1000).",
    ),
)

weights = several(
    click.option(
        "--bias/--no-bias", default=True, show_default=True, help="A free, unpenalised bias."
    ),
    click.option(
        "-B",
        "liblinear_bias",
        type=float,
        hidden=True,
        help="LIBLINEAR's letter: negative is --no-bias, anything else --bias.",
    ),
    click.option(
        "-w",
        "weights",
        type=(float, float),
        multiple=True,
        metavar="LABEL WEIGHT",
        help="Multiply C by WEIGHT for class LABEL; also written -wLABEL WEIGHT; repeatable.",
    ),
    click.option(
        "--multiclass",
        type=click.Choice(["ovo", "ovr"]),
        help="One-versus-one (default with a kernel) or one-versus-rest (default when linear).",
    ),
)

problem = several(
    kernel,
    click.option(
        "-g",
        "--gamma",
        type=Gamma(),
        help="Kernel width (default: 1/features; 'scale': 1/(features*variance)).",
    ),
    click.option("-c", "--cost", type=float, default=1.0, show_default=True, help="C."),
    weights,
    click.option(
        "-b",
        "--probability",
        type=click.IntRange(0, 1),
        default=0,
        show_default=True,
        help="1: calibrate probabilities (trains five more times).",
    ),
)

engine = several(
    click.option(
        "--solver",
        type=click.Choice(SOLVERS),
        default="auto",
        show_default=True,
        help="nesvm and homotopy are the paper's Algorithms 1 and 2 as printed.",
    ),
    click.option(
        "-e",
        "--tol",
        type=float,
        default=1e-3,
        show_default=True,
        help="Certified relative duality gap to stop at.",
    ),
    click.option("--mu", type=float, default=5.0, show_default=True, help="nesvm: smoothing."),
    click.option(
        "--mu-start", type=float, default=5.0, show_default=True, help="homotopy: first smoothing."
    ),
    click.option(
        "--mu-end", type=float, help="homotopy: last smoothing (default: 1/100 of the first)."
    ),
    click.option(
        "--epsilon",
        type=float,
        default=1e-3,
        show_default=True,
        help="nesvm, homotopy: stop at a change of the smoothed objective below this.",
    ),
    click.option(
        "--lipschitz",
        type=click.Choice(["paper", "tight"]),
        help="nesvm, homotopy: the paper's step constant (default) or the spectral one.",
    ),
    click.option(
        "--max-iter", type=click.IntRange(min=1), default=100_000, show_default=True, help="Rounds."
    ),
    click.option("--time-limit", type=float, metavar="S", help="Seconds of solving."),
)

seed = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of folds and random orders.",
)

solver = several(
    engine,
    click.option(
        "--warm-start",
        metavar="MODEL",
        help="Start from the linear machine in this file, of another C perhaps.",
    ),
    seed,
)

checkpoints = several(
    click.option(
        "--checkpoint",
        metavar="FILE",
        help="Save the state of training to FILE now and then; removed when the model is written.",
    ),
    click.option(
        "--checkpoint-every",
        type=float,
        default=60.0,
        show_default=True,
        metavar="S",
        help="Seconds between two checkpoints.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Go on from the state in the file of --checkpoint, to the same model.",
    ),
)

data = several(
    click.option(
        "--features",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of features (default: the highest index in the file).",
    ),
    click.option("--float32", is_flag=True, help="Keep the data in single precision."),
)

plot = click.option(
    "--plot",
    metavar="FILE",
    help="Draw the run into a PNG, SVG or PDF file (needs matplotlib).",
)
html = click.option(
    "--html",
    metavar="FILE",
    help="Write the run as an interactive page that needs nothing but a browser.",
)
trace = click.option("--trace", metavar="FILE", help="Write every round as a line of CSV.")


def fit_options(given: dict) -> dict:
    """What every fit takes, from the options `kernel`, `weights`, `engine` and `seed`."""
    bias = given["bias"] if given["liblinear_bias"] is None else given["liblinear_bias"] >= 0
    same = (
        "model kernel degree coef0 cache_mb multiclass solver tol mu mu_start mu_end epsilon "
        "lipschitz max_iter time_limit seed approx landmarks"
    )
    return {
        **{name: given[name] for name in same.split()},
        "bias": bias,
        "class_weight": dict(given["weights"]) or None,
    }


def training_options(given: dict) -> dict:
    """What `nesvm_jit.train` takes, from the options `problem`, `solver` and `checkpoints`."""
    return {
        **fit_options(given),
        "gamma": given["gamma"],
        "C": given["cost"],
        "probability": bool(given["probability"]),
        **{name: given[name] for name in ("checkpoint", "checkpoint_every", "resume")},
    }


def is_stdout(path: str) -> bool:
    """Whether a result goes to standard output, where nothing else may be then."""
    return path in ("-", "/dev/stdout")


def require_another_file(name: str, path: str, *inputs: str) -> None:
    """Refuse to write over a file that is read."""
    for given in inputs:
        if os.path.isfile(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise click.UsageError(f"{name} must be another file than the one that is read")


def print_json(facts: dict) -> None:
    """One line of JSON; what is no number (an infinite gap) is null."""

    def plain(value):
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    click.echo(_json.dumps(plain(facts), allow_nan=False))
