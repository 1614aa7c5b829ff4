"""The calls that made a part what it is: what has to be repeated where it is built again."""

from .holder import Call, Ref

SHORTEN_EVERY = 64  # calls


class Log:
    """Calls in order, without those that left no trace.

    A part is in two states: the u of its last sweep, and the point that steps have led to. A kept
    vector depends on the state it was made of, or on other vectors.
    """

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._dropped: set[int] = set()
        self._since = 0

    def add(self, call: Call) -> None:
        """Remember a call that all parts have answered."""
        self._dropped.update(call.dropped)
        if call.kept_as is not None or call.method in _SWEEP | _STEPS:
            self._calls.append(call._replace(dropped=()))
        self._since += 1
        if self._since >= SHORTEN_EVERY:
            self._calls, self._since = self.calls(), 0

    def calls(self) -> list[Call]:
        """Those that matter, found from the end: what nothing later needs is left out."""
        needed: set[object] = {"sweep", "steps"}
        kept = []
        for call in reversed(self._calls):
            if call.kept_as is not None:
                wanted = call.kept_as not in self._dropped or call.kept_as in needed
                needs = _SOURCE.get(call.method)
            elif call.method in _SWEEP:
                wanted, needs = "sweep" in needed, None
                needed.discard("sweep")
            else:
                wanted, needs = "steps" in needed, None
                if call.method in ("restore", "place"):
                    needed.discard("steps")
            if not wanted:
                continue
            kept.append(call)
            needed.update(_numbers(call.args))
            if needs is not None:
                needed.add(needs)
        return kept[::-1]


def _numbers(args: tuple) -> set[int]:
    """Of the vectors among arguments."""
    found = set()
    for a in args:
        if isinstance(a, Ref):
            found.add(a.number)
        elif type(a) is tuple:
            found |= _numbers(a)
    return found


_SWEEP = {"sweep"}
_STEPS = {"place", "aim", "step", "centre_on", "restore"}
_SOURCE = {"swept": "sweep", "stepped": "steps"}
