"""The driver's side of the rows of a distributed problem, which workers have loaded."""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ..binary.linear import require_memory
from ..errors import InputError
from ..problems.linear import LinearProblem
from .cluster import Cluster, LostShardError
from .holder import ClassProblem
from .loading import Source, Summary, total_size
from .pieces import array_pieces, file_pieces, group
from .remote import RemoteData, RemoteShard
from .worker import checksum, summarise


class RowsOnWorkers:
    """Rows on the workers, in at most as many shards as there are workers."""

    def __init__(self, client: Any, data: Any, y: Any, n_features: int | None, dtype: type):
        self.cluster = Cluster(client)
        n_shards = len(self.cluster.workers())
        if y is None:
            paths = [data] if isinstance(data, str) else list(data)
            if not paths:
                raise InputError("at least one file is required")
            pieces = file_pieces(paths, n_shards)
        else:
            pieces = array_pieces(client, data, y)
        stem = uuid.uuid4().hex[:12]
        self.sources = [
            (f"{stem}-rows-{k}", Source(tuple(some), n_features, dtype))
            for k, some in enumerate(group(pieces, n_shards))
        ]
        summaries: list[Summary] = self._run_all(summarise)
        # a range of bytes inside one long line has no rows
        kept = [k for k, summary in enumerate(summaries) if summary.size.rows]
        if not kept:
            raise InputError("the data must have rows, they have none")
        self.sources = [self.sources[k] for k in kept]
        summaries = [summaries[k] for k in kept]
        size = total_size([s.size for s in summaries])
        if n_features is not None:
            size = size._replace(cols=n_features)
        self.data = RemoteData(size, summaries[0].dtype)
        self.labels: Counter[float] = Counter()  # number of rows by label, in order of appearance
        for summary in summaries:
            self.labels.update(summary.labels)

    def checksums(self, costs: Mapping[float, float]) -> list[Any]:
        """Return checksums of the rows and labels of every shard, the size, and the costs."""
        return [self._run_all(checksum), [*self.data.size], [*map(list, costs.items())]]

    def _run_all(self, function: Callable[..., Any]) -> list[Any]:
        """Run a function on the rows of every shard and return its results. Rows that are lost are
        read again."""
        while True:
            for name, _ in self.sources:
                self.cluster.assign(name)
            futures = [(self.cluster.run(name, function, s), name) for name, s in self.sources]
            try:
                return [self.cluster.result(future, name) for future, name in futures]
            except LostShardError:
                continue

    def pose(self, problem: ClassProblem) -> LinearProblem:
        """Return the problem of one class against the others."""
        require_memory(self.data.size.cols)
        shard: Any = RemoteShard(self.cluster, self.sources, self.data, problem)
        return LinearProblem(shard)

    def close(self) -> None:
        """Let the workers forget the rows."""
        self.cluster.release([name for name, _ in self.sources])


def describe_labels(labels: Mapping[float, int]) -> str:
    """Return the first labels as text for a message."""
    first = [f"{label:g}" for label in labels]
    return ", ".join(first[:5]) + (" …" if len(first) > 5 else "")
