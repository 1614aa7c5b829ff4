"""Faults that change no result, kept in known.toml with the reason. They are recognised by the
function's name and the text of the line before and after, so that they outlive moves."""

from pathlib import Path

from .faults import Fault

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

FILE = Path(__file__).with_name("known.toml")
KINDS = ("equivalent", "time")  # nothing changes; only the time a result takes


class Known:
    """What the file says of faults."""

    def __init__(self, path: Path = FILE):
        entries = tomllib.loads(path.read_text()).get("fault", []) if path.exists() else []
        self._kinds: dict[tuple, str] = {}
        for entry in entries:
            kind, why = entry["kind"], entry["why"]
            if kind not in KINDS or not why.strip():
                raise ValueError(f"{path.name}: a kind of {KINDS} and a reason needed: {entry}")
            self._kinds[entry["function"], entry["before"], entry["after"]] = kind

    def kind(self, fault: Fault) -> str | None:
        """ "equivalent", "time", or None."""
        return self._kinds.get((fault.function.split(".")[-1], fault.before, fault.after))


def entry(fault: Fault, kind: str = "?", why: str = "") -> str:
    """The lines of the file that would name this fault."""
    fields = {
        "function": fault.function.split(".")[-1],
        "before": fault.before,
        "after": fault.after,
        "kind": kind,
        "why": why,
    }
    return "[[fault]]\n" + "".join(f"{k} = {_quoted(v)}\n" for k, v in fields.items())


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else f"'''{text}'''"
