"""The calls that a shard must repeat when it is built again on another worker."""

from .calls import METHODS, Call, Memory, Result, vectors_in

SHORTEN_EVERY = 64  # number of new calls after which those that need no repetition are removed


class Log:
    """The calls that changed a shard or made a vector, in order."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._dropped: set[int] = set()
        self._added = 0

    def add(self, call: Call) -> None:
        """Add a call that all shards have answered."""
        self._dropped.update(call.dropped)
        method = METHODS[call.method]
        if method.result is Result.VECTOR or method.begins or method.changes:
            self._calls.append(call._replace(dropped=()))
        self._added += 1
        if self._added % SHORTEN_EVERY == 0:
            self._calls = self.calls()

    def calls(self) -> list[Call]:
        """Return the calls that bring a new shard to the present state: going backwards, a call is
        left out if neither the present state nor a later call needs its result."""
        needed: set[Memory | int | None] = set(Memory)  # memories, and the numbers of vectors
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
