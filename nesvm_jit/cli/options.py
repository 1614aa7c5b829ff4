"""Options that several commands share. Options of settings are made from the table of settings."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from ..settings import KERNELS, MULTICLASS, OneOf, Positive, Settings, Whole, YesOrNo

LIBSVM_NUMBERS = {"0": "linear", "1": "poly", "2": "rbf", "4": "precomputed"}
TABLE = {row.name: row for row in fields(Settings)}

Option = Callable[[Any], Any]


class KernelName(click.Choice):
    """A kernel, given by its name or by LIBSVM's number."""

    name = "kernel"

    def __init__(self) -> None:
        super().__init__(KERNELS)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return super().convert(LIBSVM_NUMBERS.get(value, value), param, ctx)


class Gamma(click.ParamType):
    """A number, `scale` or `auto`."""

    name = "float|scale"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return value if value in ("scale", "auto") else click.FLOAT.convert(value, param, ctx)


def several(*options: Option) -> Option:
    """Combine decorators into one; help lists their options in the order given."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def setting(name: str, *flags: str, more: str = "", **changes: Any) -> Option:
    """Make the option of a setting, with the setting's name unless a long flag is given. `more` is
    added to the help text of the table."""
    row = TABLE[name]
    how = {
        "help": row.metadata["help"] + more,
        "default": row.default,
        "show_default": row.default is not None,
        **_type_of(row.metadata["kind"], row.default),
    }
    long = () if any("--" in flag for flag in flags) else (f"--{name.replace('_', '-')}",)
    return click.option(*flags, *long, name, **(how | changes))


def _type_of(kind: Any, default: Any) -> dict[str, Any]:
    """Return Click's arguments for a kind of values; `Settings` checks them further."""
    if isinstance(kind, OneOf):
        return {"type": click.Choice(kind.names)}
    if isinstance(kind, Positive):
        return {"type": click.FLOAT}
    if isinstance(kind, Whole):
        return {"type": click.IntRange(min=kind.least)}
    if isinstance(kind, YesOrNo):
        return {"is_flag": True, "show_default": bool(default)}
    return {} if default is None else {"type": type(default)}


def _set_threads(ctx: Any, param: Any, value: int | None) -> None:
    if value is not None:
        from ..jit import set_threads

        set_threads(value)


threads = click.option(
    "--threads",
    type=click.IntRange(min=1),
    callback=_set_threads,
    expose_value=False,
    help="Run on this many threads (default: all cores).",
)
stream = click.option(
    "--stream",
    is_flag=True,
    help="Leave an on-disk matrix on disk and read it in every pass, even if it would fit into "
    "memory.",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
# For commands that fit: with `-q`, results that are not certified are still reported.
quiet_fit = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Print nothing but errors, and one line if the tolerance was not certified.",
)
strict = click.option(
    "--strict",
    is_flag=True,
    help="End with exit status 3 if the tolerance was not certified. Files are written all the "
    "same.",
)
as_json = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object on standard output instead of text.",
)

kernel = several(
    setting("model", "-s"),
    setting(
        "kernel", "-t", type=KernelName(), more=" LIBSVM's numbers 0, 1, 2 and 4 are accepted too."
    ),
    setting("degree", "-d"),
    setting("coef0", "-r"),
    setting("cache_mb", "-m"),
    setting("approx"),
    setting("landmarks", metavar="M"),
)

class_weights = click.option(
    "-w",
    "weights",
    type=(float, float),
    multiple=True,
    metavar="LABEL WEIGHT",
    help="Multiply C by WEIGHT for class LABEL. It can be given once per class, also written "
    "-wLABEL WEIGHT.",
)

weights = several(
    setting("bias", "--bias/--no-bias"),
    click.option(
        "-B",
        "liblinear_bias",
        type=float,
        hidden=True,
        help="Accept LIBLINEAR's option: a negative number means --no-bias, any other --bias.",
    ),
    class_weights,
    click.option(
        "--multiclass",
        type=click.Choice(MULTICLASS),
        help="Divide several classes into one problem per pair (ovo, the default with a kernel) "
        "or one per class against the rest (ovr, the default when linear).",
    ),
)

problem = several(
    kernel,
    setting("gamma", "-g", type=Gamma()),
    setting("C", "-c", "--cost"),
    weights,
    click.option(
        "-b",
        "--probability",
        type=click.IntRange(0, 1),
        default=0,
        show_default=True,
        help="Calibrate probabilities if this is 1, which trains five more times.",
    ),
)

engine = several(
    setting("solver"),
    setting("tol", "-e"),
    setting("mu"),
    setting("mu_start"),
    setting("mu_end"),
    setting("epsilon"),
    setting("lipschitz"),
    setting("returned"),
    setting("max_iter"),
    setting("time_limit", metavar="S"),
)

seed = setting("seed")

solver = several(
    engine,
    click.option(
        "--warm-start",
        metavar="MODEL",
        help="Start from the linear machine in this file, for example one trained with another C.",
    ),
    seed,
)

checkpoints = several(
    setting("checkpoint", metavar="FILE", more=" It is removed when the model is written."),
    setting("checkpoint_every", metavar="S"),
    setting("resume"),
)

float32 = click.option("--float32", is_flag=True, help="Keep the data in single precision.")

data = several(
    click.option(
        "--features",
        type=click.IntRange(min=1),
        metavar="N",
        help="Set the number of features (default: the highest index in the file).",
    ),
    float32,
)

plot = click.option(
    "--plot",
    metavar="FILE",
    help="Draw the run into a PNG, SVG or PDF file (needs matplotlib).",
)
html = click.option(
    "--html",
    metavar="FILE",
    help="Write the run as a page for any browser (needs matplotlib).",
)
trace = click.option("--trace", metavar="FILE", help="Write every iteration as a line of CSV.")


def fit_keywords(given: dict[str, Any]) -> dict[str, Any]:
    """Make the keywords of `nesvm_jit.train` or `path` from the options that were given."""
    keywords = {name: given[name] for name in (*TABLE, "multiclass") if name in given}
    if given["liblinear_bias"] is not None:
        _require_agreement(given["liblinear_bias"], keywords["bias"])
        keywords["bias"] = given["liblinear_bias"] >= 0
    if "probability" in given:
        keywords["probability"] = bool(given["probability"])
    return {**keywords, "class_weight": dict(given["weights"]) or None}


def _require_agreement(letter: float, bias: bool) -> None:
    """Raise an error if -B contradicts --bias or --no-bias."""
    context = click.get_current_context(silent=True)
    source = context and context.get_parameter_source("bias")
    if source is click.core.ParameterSource.COMMANDLINE and bias != (letter >= 0):
        flag = "--bias" if bias else "--no-bias"
        raise click.UsageError(f"{flag} and -B {letter:g} contradict each other")
