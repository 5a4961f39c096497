"""The truth of a simulated trace, in the form that the readers in this folder compare."""

import json
from collections import Counter

# Names of routine kinds in tables, if the truth file has a different name.
KINDS = {"msi": "isr", "passive_isr": "isr"}


class Truth:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.all = json.load(file)
        assert self.all["simulated"]
        # Sums over all CPUs in the time range of the whole trace.
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
        self.duration_ns = self.all["duration_ns"]
        assert self.all["moments_left_out"] == 0
        self.focus = self._focus()
        self.freezes = self._freezes()
        self.keys = [(m["value"], m["at_ns"]) for m in self._moments("key")]
        self.marks = self.all["events_by_kind"].get("Mark", 0)

    def _moments(self, *kinds):
        return [moment for moment in self.all["moments"] if moment["what"] in kinds]

    def _focus(self):
        """Returns the times in focus as (process, from, to). The process of the first time is
        unknown (None). Times of the idle process are left out."""
        changes = [(m["at_ns"], m["process"]) for m in self._moments("focus")]
        if not changes:
            return []
        ends = [at for at, _ in changes[1:]] + [self.duration_ns]
        return [(None, 0, changes[0][0])] + [
            (process["name"], at, end) for (at, process), end in zip(changes, ends) if process["id"]
        ]

    def _freezes(self):
        """Returns the freezes as (process, from, to)."""
        since, freezes = {}, []
        for moment in self._moments("freeze", "thaw"):
            process = (moment["process"]["id"], moment["process"]["name"])
            if moment["what"] == "freeze":
                since[process] = moment["at_ns"]
            else:
                freezes.append((process[1], since.pop(process), moment["at_ns"]))
        freezes += [(name, start, self.duration_ns) for (_, name), start in since.items()]
        return sorted(freezes, key=lambda freeze: freeze[1])


def same(what, found, expected):
    assert found == expected, f"{what}: found {found}, the truth is {expected}"


def same_times(what, found, expected):
    """Compares lists of (process, time, ...) in order. Times may differ by less than a tick of the
    trace's clock (100 ns). An expected process of None is unknown and matches any process."""
    assert len(found) == len(expected), f"{what}: found {found}, the truth is {expected}"
    for (found_who, *found_at), (who, *at) in zip(found, expected):
        assert who in (None, found_who), f"{what}: found {found_who} at {found_at}, it is {who}"
        assert all(abs(f - e) < 100 for f, e in zip(found_at, at, strict=True)), (
            f"{what} of {who}: found {found_at}, the truth is {at}"
        )
