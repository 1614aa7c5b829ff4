"""The workers of a dask client, and which of them holds which part."""

import contextlib
import time
from typing import Any

from ..errors import NesvmError
from .worker import forget

POLL = 0.5  # seconds without an answer, after which workers are counted
PATIENCE = 60.0  # seconds without any worker


class LostPartError(Exception):
    """Parts, by name, whose worker is gone."""

    def __init__(self, *names: str):
        super().__init__(*names)
        self.names = names


class Cluster:
    """Tasks on the worker of a part; what dask raises becomes one line."""

    def __init__(self, client: Any):
        self.client = client
        self.address = client.scheduler.address if client.scheduler else "?"
        self._homes: dict[str, str] = {}  # the worker of a part, or of its rows

    def workers(self) -> dict[str, int]:
        """Threads by address; at least one worker."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                found = dict(self.client.nthreads())
            except Exception as e:
                raise self.lost(e) from None
            if found:
                return found
            if time.monotonic() > end:
                raise NesvmError(f"{self.address}: no worker for {PATIENCE:g} s")
            time.sleep(POLL)

    def find_home(self, name: str) -> None:
        """Choose the worker with the least to do, unless it has one that is alive."""
        alive = self.workers()
        if self._homes.get(name) not in alive:
            load = dict.fromkeys(alive, 0.0)
            for address in self._homes.values():
                if address in load:
                    load[address] += 1.0 / max(1, alive[address])
            self._homes[name] = min(sorted(load), key=lambda a: load[a])

    def live_with(self, name: str, rows: str) -> None:
        """Let a part live where its rows are."""
        self._homes[name] = self._homes[rows]

    def run(self, name: str, function: Any, *args: Any) -> Any:
        """One task on the worker of a part, in the background."""
        return self.client.submit(
            function, name, *args, workers=[self._homes[name]], pure=False, retries=0
        )

    def result(self, future: Any, name: str) -> Any:
        """The result of a task on the worker of a part."""
        from distributed import CancelledError, KilledWorker, TimeoutError

        while True:
            try:
                return future.result(timeout=POLL)
            except TimeoutError:
                self.require_alive([name])
            except (KilledWorker, CancelledError, OSError) as e:
                if self.client.status != "running":
                    raise self.lost(e) from None
                self.require_alive([name])
                raise LostPartError(name) from None

    def require_alive(self, names: list[str]) -> None:
        """LostPartError if the worker of one is gone."""
        alive = self.workers()
        gone = [name for name in names if self._homes.get(name) not in alive]
        if gone:
            raise LostPartError(*gone)

    def lost(self, error: BaseException) -> NesvmError:
        """The error of a scheduler that is gone."""
        what = " ".join(str(error).split())[:200] or type(error).__name__
        return NesvmError(f"{self.address}: the scheduler was lost: {what}")

    def release(self, names: list[str]) -> None:
        """Let workers forget parts or rows; those that are gone are not asked."""
        homes = {name: self._homes.pop(name) for name in names if name in self._homes}
        if self.client.status != "running":
            return
        with contextlib.suppress(Exception):  # nothing depends on it
            alive = self.client.nthreads()
            for name, address in homes.items():
                if address in alive:
                    self.client.run(forget, name, workers=[address], on_error="ignore", wait=False)
