"""The network of a request for a given last arrival, as the paper on continuous retrieval has it."""

import numpy as np
from ortools.graph.python import max_flow


class Network:
    """Source to bucket with as many units as it needs, bucket to holder with one, holder to sink with what it completes in time.

    An instance has `free_ns` and `access_ns` of each disk, and `needed` and `holders` of each bucket. Disks that hold nothing of the
    request are not in the network.
    """

    def __init__(self, instance):
        needed = np.array(instance["needed"], dtype=np.int64)
        degrees = [len(row) for row in instance["holders"]]
        held = np.array([disk for row in instance["holders"] for disk in row], dtype=np.int64)
        disks, places = np.unique(held, return_inverse=True)
        self.free_ns = np.array(instance["free_ns"], dtype=np.int64)[disks]
        self.access_ns = np.array(instance["access_ns"], dtype=np.int64)[disks]
        self.accesses = int(needed.sum())
        buckets = len(needed)
        self.source, self.sink = 0, 1 + buckets + len(disks)
        of_buckets = np.arange(1, 1 + buckets)
        of_disks = np.arange(1 + buckets, self.sink)
        self.flow = max_flow.SimpleMaxFlow()
        add = self.flow.add_arcs_with_capacity
        add(np.full(buckets, self.source), of_buckets, needed)
        add(np.repeat(of_buckets, degrees), of_disks[places], np.ones(len(held), dtype=np.int64))
        self.last_arcs = add(of_disks, np.full(len(disks), self.sink), np.zeros(len(disks), dtype=np.int64))

    def set_last_arrival(self, time_ns):
        """How many accesses each disk can have completed by then."""
        in_time = np.maximum(time_ns - self.free_ns, 0) // self.access_ns
        self.flow.set_arcs_capacity(self.last_arcs, np.minimum(in_time, self.accesses))

    def solve(self):
        """Whether the flow can be found; its value is `self.flow.optimal_flow()`."""
        return self.flow.solve(self.source, self.sink) == self.flow.OPTIMAL

    def carries_all(self, time_ns):
        self.set_last_arrival(time_ns)
        if not self.solve():
            raise RuntimeError("OR-tools found no maximum flow")
        return self.flow.optimal_flow() == self.accesses
