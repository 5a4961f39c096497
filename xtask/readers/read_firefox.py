"""Checks a profile by the rules of the Firefox Profiler's processed format, and compares it with
the truth of its trace.

usage: read_firefox.py FILE TRUTH
"""

import json
import re
import sys
from collections import Counter

from truth import KINDS, Truth, same

with open(sys.argv[1], encoding="utf-8") as file:
    profile = json.load(file)
truth = Truth(sys.argv[2])
meta = profile["meta"]
# Source of the format:
# https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md
assert meta["preprocessedProfileVersion"] >= 47 and meta["interval"] > 0
assert meta["startTime"] > 946_684_800 * 1000
schemas = {schema["name"]: schema for schema in meta["markerSchema"]}
IDLE = [category["name"] for category in meta["categories"]].index("Idle")


def check_table(table, indices):
    """Checks that all columns have the length of the table and all indices are valid."""
    length = table["length"]
    for name, column in table.items():
        if isinstance(column, list):
            assert len(column) == length, (name, len(column), length)
    for name, limit in indices.items():
        for row, index in enumerate(table[name]):
            limit_here = row if limit is None else limit
            assert index is None or index == -1 or 0 <= index < limit_here, (name, row, index)


for library in profile["libs"]:
    assert re.fullmatch(r"[0-9A-F]{32}[0-9a-f]*|0+", library["breakpadId"]), library
samples, routines, durations, faults = Counter(), Counter(), Counter(), 0
seen = set()
for thread in profile["threads"]:
    assert (thread["pid"], thread["tid"]) not in seen
    seen.add((thread["pid"], thread["tid"]))
    strings = len(thread["stringArray"])
    frames, functions = thread["frameTable"], thread["funcTable"]
    check_table(functions, {"name": strings, "resource": thread["resourceTable"]["length"]})
    check_table(thread["resourceTable"], {"name": strings, "lib": len(profile["libs"])})
    check_table(frames, {"func": functions["length"], "category": len(meta["categories"])})
    check_table(thread["stackTable"], {"frame": frames["length"], "prefix": None})
    table = thread["samples"]
    check_table(table, {"stack": thread["stackTable"]["length"]})
    assert all(delta >= 0 for delta in table["timeDeltas"])
    # No thread may use more CPU time than the time that passed.
    used, passed = sum(table["threadCPUDelta"]), sum(table["timeDeltas"]) * 1000
    assert used <= passed + 1000 * table["length"], (thread["name"], used, passed)
    samples[thread["processName"]] += sum(table["weight"])
    markers = thread["markers"]
    check_table(markers, {"name": strings, "category": len(meta["categories"])})
    for name, data, start, end in zip(
        markers["name"], markers["data"], markers["startTime"], markers["endTime"]
    ):
        schema = schemas[data["type"]]
        fields = {field["key"] for field in schema.get("fields", schema.get("data", [])) if "key" in field}
        assert set(data) - {"type"} <= fields and start <= end
        if data["type"] == "Interrupt":
            kind = thread["stringArray"][name]
            routines[KINDS.get(kind, kind)] += 1
            durations[KINDS.get(kind, kind)] += round((end - start) * 1e6)
        faults += data["type"] == "HardFault"
same("samples", +samples, truth.samples)
same("routines", routines, truth.routines)
for kind, ns in truth.routine_ns.items():
    # This format stores times as milliseconds in doubles, so each time may differ by some nanoseconds.
    assert abs(durations[kind] - ns) <= routines[kind] * 10, (kind, durations[kind], ns)
same("hard faults", faults, truth.hard_faults)
print(f"the Firefox profile matches the truth: {samples.total()} samples, "
      f"{routines.total()} routines, {len(profile['libs'])} libraries")
