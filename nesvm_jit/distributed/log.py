"""The calls that made a shard what it is: what has to be repeated where it is built again."""

from .calls import METHODS, Call, Memory, Result, vectors_in

SHORTEN_EVERY = 64  # calls between two removals of those that need not be repeated


class Log:
    """Calls in order, without those that left no trace."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._dropped: set[int] = set()
        self._added = 0

    def add(self, call: Call) -> None:
        """Remember a call that all shards have answered."""
        self._dropped.update(call.dropped)
        method = METHODS[call.method]
        if method.result is Result.VECTOR or method.begins or method.changes:
            self._calls.append(call._replace(dropped=()))
        self._added += 1
        if self._added % SHORTEN_EVERY == 0:
            self._calls = self.calls()

    def calls(self) -> list[Call]:
        """Those that matter, found from the end: what nothing later needs is left out."""
        needed: set[Memory | int | None] = set(Memory)  # with the numbers of vectors
        kept = []
        for call in reversed(self._calls):
            method = METHODS[call.method]
            if method.result is Result.VECTOR:
                wanted = call.number not in self._dropped or call.number in needed
            else:
                wanted = (method.begins or method.changes) in needed
            if not wanted:
                continue
            kept.append(call)
            needed.discard(method.begins)
            needed.add(method.reads)
            needed.update(vectors_in(call.args))
        return kept[::-1]
