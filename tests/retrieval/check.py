"""Checks the last arrivals that the solver of continuous retrieval found, against OR-tools.

    python3 check.py FILE

Each line of FILE is an instance, a JSON object as in network.py, with the last arrival `last_ns` in question. All buckets must be able
to arrive by then, and must not be able to arrive a nanosecond earlier. A maximum flow judges where each bucket is read from one holder,
an integer program where one is read from more. The last line printed counts what passed and failed.
"""

import json
import sys

from network import Network
from ortools.linear_solver import pywraplp

COMPLAINTS_MAX = 10


def complaint(instance):
    """What is wrong with the last arrival of an instance, if something is."""
    is_plain = all(needed == 1 for needed in instance["needed"])
    by, judge = ("a maximum flow", Network(instance)) if is_plain else ("an integer program", Program(instance))
    last_ns = instance["last_ns"]
    if not judge.carries_all(last_ns):
        return f"{by} shows that not all can arrive by {last_ns} ns"
    if judge.carries_all(last_ns - 1):
        return f"{by} shows that all can arrive before {last_ns} ns"
    return None


class Program:
    """A variable of 0 or 1 for each bucket and holder: whether the bucket is read there. As many are to be read as can arrive."""

    def __init__(self, instance):
        self.solver = pywraplp.Solver.CreateSolver("SCIP")
        self.accesses = sum(instance["needed"])
        read = [[] for _ in instance["free_ns"]]
        every = []
        for needed, holders in zip(instance["needed"], instance["holders"]):
            chosen = [self.solver.BoolVar("") for _ in holders]
            self.solver.Add(sum(chosen) <= needed)
            every += chosen
            for disk, variable in zip(holders, chosen):
                read[disk].append(variable)
        disks = zip(instance["free_ns"], instance["access_ns"], read)
        self.limits = [(free, access, self.solver.Add(sum(of_disk) <= 0)) for free, access, of_disk in disks if of_disk]
        self.solver.Maximize(sum(every))

    def carries_all(self, time_ns):
        for free_ns, access_ns, limit in self.limits:
            limit.SetUb(max(time_ns - free_ns, 0) // access_ns)
        if self.solver.Solve() != pywraplp.Solver.OPTIMAL:
            raise RuntimeError("the integer program has no solution that is known to be best")
        return round(self.solver.Objective().Value()) == self.accesses


def main():
    passed, failed = 0, 0
    with open(sys.argv[1], encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            instance = json.loads(line)
            wrong = complaint(instance)
            passed += wrong is None
            failed += wrong is not None
            if wrong is not None and failed <= COMPLAINTS_MAX:
                print(f"{sys.argv[1]}:{number}: {wrong}")
    print(f"{passed} passed, {failed} failed, 0 skipped")


main()
