"""What a simulation says of its trace, in the terms of the readers beside this file."""

import json
from collections import Counter

# The kinds of routines as tables name them, and as the truth does.
KINDS = {"msi": "isr", "passive_isr": "isr"}


class Truth:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.all = json.load(file)
        assert self.all["simulated"]
        # Of the whole trace, over all CPUs.
        routines = [r for r in self.all["windows"][0]["routines"] if "cpu" not in r]
        self.routines = Counter()
        self.routine_ns = Counter()
        for routine in routines:
            self.routines[routine["kind"]] += routine["count"]
            self.routine_ns[routine["kind"]] += routine["inclusive_ns"]
        self.switches = Counter()
        for thread in self.all["threads"]:
            self.switches[thread["thread_id"]] += thread["switches_in"]
        self.switches = +self.switches
        self.samples = Counter({p["name"]: 0 for p in self.all["processes"]})
        for process in self.all["processes"]:
            self.samples[process["name"]] += process["samples"]
        self.samples["Idle"] += self.all["idle_samples"]
        self.samples = +self.samples
        self.hard_faults = self.all["hard_faults"]
        self.disk_reads = sum(disk["reads"] for disk in self.all["disks"])


def same(what, found, expected):
    assert found == expected, f"{what}: found {found}, the truth is {expected}"
