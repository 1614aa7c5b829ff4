"""Faults that change no result, kept in known.toml with the reason. They are recognised by the
function's name and the text of the line before and after, so that they outlive moves. Where several
faults share these, an entry also says the file, a longer name of the function, or which
occurrence it is: an entry names exactly one fault."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from .errors import MutantsError
from .faults import Fault
from .trees import write_whole

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

FILE = Path(__file__).with_name("known.toml")
KINDS = ("equivalent", "time")  # nothing changes; only the time a result takes
START = "[[fault]]\n"
NEEDED = {"function", "before", "after", "kind", "why"}
MORE = {"file", "occurrence"}  # what may tell faults of the same text apart


class Known:
    """What the file says of the faults of the package."""

    def __init__(self, faults: Iterable[Fault], path: Path = FILE):
        self.entries = [entry for _, entry in _blocks(path)[1]] if path.exists() else []
        self._kinds: dict[Fault, str] = {}
        for entry, found in zip(self.entries, _match(self.entries, faults), strict=True):
            if entry["kind"] not in KINDS or not entry["why"].strip():
                raise MutantsError(f"{path.name}: a kind of {KINDS} and a reason needed: {entry}")
            if len(found) > 1:
                raise MutantsError(f"{path.name}: {ambiguity(entry, found)}")
            for fault in found:
                if fault in self._kinds:
                    raise MutantsError(f"{path.name}: two entries of one fault: {_short(entry)}")
                self._kinds[fault] = entry["kind"]

    def kind(self, fault: Fault) -> str | None:
        """ "equivalent", "time", or None."""
        return self._kinds.get(fault)

    def count(self) -> dict[str, int]:
        """Entries of each kind."""
        return {kind: sum(e["kind"] == kind for e in self.entries) for kind in KINDS}


def wrong_entries(faults: Iterable[Fault], path: Path = FILE) -> tuple[list[str], list[str]]:
    """Entries that no fault matches, and those that several do, each in one line."""
    entries = [entry for _, entry in _blocks(path)[1]]
    pairs = list(zip(entries, _match(entries, faults), strict=True))
    dead = [_short(entry) for entry, found in pairs if not found]
    return dead, [ambiguity(entry, found) for entry, found in pairs if len(found) > 1]


def prune(faults: Iterable[Fault], removed: Path, path: Path = FILE) -> list[str]:
    """Move the entries that no fault matches to the end of another file, where their reasons can
    be read; returns them, each in one line."""
    header, blocks = _blocks(path)
    found = _match([entry for _, entry in blocks], faults)
    kept = [block for (block, _), some in zip(blocks, found, strict=True) if some]
    dead = [pair for pair, some in zip(blocks, found, strict=True) if not some]
    if dead:  # written there before they are removed here, so that no reason is lost
        removed.parent.mkdir(parents=True, exist_ok=True)
        with removed.open("a", encoding="utf-8") as file:
            file.writelines(START + block for block, _ in dead)
        write_whole(path, header + "".join(START + block for block in kept))
    return [_short(entry) for _, entry in dead]


def ambiguity(entry: dict, found: list[Fault]) -> str:
    places = ", ".join(f"{f.path}:{f.line}" for f in found)
    needed = "a file, a longer function or an occurrence is needed"
    return f"{len(found)} faults match {_short(entry)}: {needed} ({places})"


def entry(fault: Fault, faults: Iterable[Fault] = (), kind: str = "?", why: str = "") -> str:
    """The lines of the file that would name this fault, and no other."""
    short = {"function": fault.function.split(".")[-1]}
    long = {"function": fault.function}
    path, nth = fault.path.split("/", 1)[1], {"occurrence": fault.occurrence}
    file = Path(path).name
    ways: list[dict] = [
        short,
        *({**short, "file": file}, {**short, "file": path}),
        *({**long, "file": path}, {**long, "file": path, **nth}),
    ]
    texts = {"before": fault.before, "after": fault.after}
    faults = [f for f in faults if (f.before, f.after) == (fault.before, fault.after)]
    place = next(w for w in ways if sum(_names({**w, **texts}, f) for f in faults) <= 1)
    fields = {**place, **texts, "kind": kind, "why": why}
    return START + "".join(f"{k} = {_quoted(v)}\n" for k, v in fields.items())


def _blocks(path: Path) -> tuple[str, list[tuple[str, dict]]]:
    """The text above all entries, then each entry with its text."""
    try:
        header, *blocks = path.read_text(encoding="utf-8").split(START)
        above, pairs = tomllib.loads(header), [(block, tomllib.loads(block)) for block in blocks]
    except OSError as error:
        raise MutantsError(f"{path.name}: {error.strerror}") from None
    except ValueError as error:  # neither UTF-8 nor TOML
        raise MutantsError(f"{path.name}: {error}") from None
    if above:
        said = ", ".join(sorted(above))
        raise MutantsError(f"{path.name}: an entry starts with {START.strip()}, got {said}")
    for _, entry in pairs:
        if not NEEDED <= entry.keys() <= NEEDED | MORE:
            said = ", ".join(sorted(entry)) or "nothing"
            raise MutantsError(
                f"{path.name}: an entry needs {', '.join(sorted(NEEDED))}, got {said}"
            )
        for field, value in entry.items():
            kind = int if field == "occurrence" else str
            if type(value) is not kind:
                raise MutantsError(
                    f"{path.name}: {field} must be of type {kind.__name__}, got {value!r}"
                )
    return header, pairs


def _match(entries: list[dict], faults: Iterable[Fault]) -> list[list[Fault]]:
    """The faults that each entry names."""
    alike = defaultdict(list)
    for fault in faults:
        alike[fault.before, fault.after].append(fault)
    return [[f for f in alike[e["before"], e["after"]] if _names(e, f)] for e in entries]


def _names(entry: dict, fault: Fault) -> bool:
    """Whether an entry is about a fault."""
    return (
        (entry["before"], entry["after"]) == (fault.before, fault.after)
        and _ends(fault.function, entry["function"], ".")
        and _ends(fault.path, entry.get("file", fault.path), "/")
        and entry.get("occurrence", fault.occurrence) == fault.occurrence
    )


def _ends(whole: str, end: str, separator: str) -> bool:
    """Whether the last parts of a name are these. Nothing is the end of nothing alone."""
    return whole == end or (bool(end) and whole.endswith(separator + end))


def _short(entry: dict) -> str:
    where = " in ".join(filter(None, (entry["function"], entry.get("file"))))
    return f"{where or 'a module'}: {entry['before']} → {entry['after']}"


def _quoted(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    return f"'{value}'" if "'" not in value else f"'''{value}'''"
