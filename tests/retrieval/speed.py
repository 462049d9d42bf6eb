"""Times one maximum flow of OR-tools at a known last arrival, for the bench of continuous retrieval beside it.

Prints "ready" first. Then reads instances, a JSON object a line (see network.py) with the last arrival `last_ns`; after an empty line
it prints how many microseconds one of them takes in the mean, each in the fastest of some rounds. Only SimpleMaxFlow's `solve` is timed, which
runs in C++. It begins with sorting the arcs that it was given.
"""

import json
import sys
import time

from network import Network

# At least so many rounds, and more until this time has been measured.
ROUNDS_MIN = 8
ROUNDS_MAX = 50
MEASURED_NS = 100_000_000


def microseconds(networks):
    fastest, measured, rounds = [float("inf")] * len(networks), 0, 0
    while rounds < ROUNDS_MIN or (rounds < ROUNDS_MAX and measured < MEASURED_NS):
        for at, network in enumerate(networks):
            began = time.perf_counter_ns()
            network.solve()
            took = time.perf_counter_ns() - began
            fastest[at] = min(fastest[at], took)
            measured += took
        rounds += 1
    return sum(fastest) / len(networks) / 1000


def main():
    print("ready", flush=True)
    networks = []
    for line in sys.stdin:
        if line.strip():
            instance = json.loads(line)
            network = Network(instance)
            if not network.carries_all(instance["last_ns"]):
                raise RuntimeError("not all buckets arrive by the last arrival that was given")
            networks.append(network)
        else:
            print(microseconds(networks), flush=True)
            networks = []


main()
