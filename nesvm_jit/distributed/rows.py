"""The rows of a distributed problem, as the driver knows them: which worker has loaded which."""

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
    """Rows that the workers have loaded, in as many shards as there are workers."""

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
        found: list[Summary] = self._ask_all(summarise)
        # a range of bytes inside one long line has no rows
        kept = [k for k, summary in enumerate(found) if summary.size.rows]
        if not kept:
            raise InputError("the data must have rows, they have none")
        self.sources, found = [self.sources[k] for k in kept], [found[k] for k in kept]
        size = total_size([s.size for s in found])
        if n_features is not None:
            size = size._replace(cols=n_features)
        self.data = RemoteData(size, found[0].dtype)
        self.labels: Counter[float] = Counter()  # how many rows have each, in order of appearance
        for summary in found:
            self.labels.update(summary.labels)

    def checksums(self, costs: Mapping[float, float]) -> list[Any]:
        """Of the rows and labels of every shard, and of the costs of classes."""
        return [self._ask_all(checksum), [*self.data.size], [*map(list, costs.items())]]

    def _ask_all(self, function: Callable[..., Any]) -> list[Any]:
        """What a function finds of the rows of every shard; rows that are lost are read again."""
        while True:
            for name, _ in self.sources:
                self.cluster.assign(name)
            futures = [(self.cluster.run(name, function, s), name) for name, s in self.sources]
            try:
                return [self.cluster.result(future, name) for future, name in futures]
            except LostShardError:
                continue

    def pose(self, problem: ClassProblem) -> LinearProblem:
        """One class against the others."""
        require_memory(self.data.size.cols)
        shard: Any = RemoteShard(self.cluster, self.sources, self.data, problem)
        return LinearProblem(shard)

    def close(self) -> None:
        """Let the workers forget the rows."""
        self.cluster.release([name for name, _ in self.sources])


def describe_labels(labels: Mapping[float, int]) -> str:
    """The first labels, for a message."""
    first = [f"{label:g}" for label in labels]
    return ", ".join(first[:5]) + (" …" if len(first) > 5 else "")
