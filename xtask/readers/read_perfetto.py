"""Decodes a Perfetto trace with Perfetto's own messages by the rules of its importer, and compares
the content with the truth of the trace.

usage: read_perfetto.py FILE TRUTH
"""

import sys
from collections import Counter, defaultdict

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from truth import KINDS, Truth, same, same_times

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
truth = Truth(sys.argv[2])



def check_known(message):
    """Checks that Perfetto knows every field and its type."""
    assert not list(UnknownFieldSet(message)), message
    for field, value in message.ListFields():
        if field.message_type:
            for part in value if field.is_repeated else [value]:
                check_known(part)


SEQUENCE_CLEARED, SEQUENCE_NEEDED = 1, 2
names, categories, tracks = {}, {}, {}
events = []
switches = defaultdict(list)
readied = 0
processes, threads = {}, {}
is_cleared = False
clocks = {}
for packet in trace.packet:
    check_known(packet)
    if packet.HasField("clock_snapshot"):
        clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
    if packet.sequence_flags & SEQUENCE_CLEARED:
        is_cleared = True
    if packet.sequence_flags & SEQUENCE_NEEDED:
        assert is_cleared, "interned data is used before the sequence begins"
    for name in packet.interned_data.event_names:
        assert name.iid not in names
        names[name.iid] = name.name
    for category in packet.interned_data.event_categories:
        categories[category.iid] = category.name
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
        tracks[track.uuid] = track
    if packet.HasField("track_event"):
        assert packet.track_event.track_uuid in tracks
        events.append((packet.timestamp, packet.track_event))
    for event in packet.etw_events.event:
        if event.HasField("c_switch"):
            switches[packet.etw_events.cpu].append((event.timestamp, event.c_switch))
        else:
            assert event.HasField("ready_thread")
            readied += 1
    for process in packet.process_tree.processes:
        assert process.pid not in processes
        processes[process.pid] = process.cmdline[0]
    for thread in packet.process_tree.threads:
        assert thread.tid not in threads
        threads[thread.tid] = thread.tgid

# The boot-time clock (6) begins at 0, and the wall-clock time (1) is after the year 2000.
assert clocks[6] == 0 and clocks[1] > 946_684_800 * 10**9

# Each switch of a CPU must stop the thread that the previous switch started.
found = Counter()
for cpu, of_cpu in switches.items():
    of_cpu.sort(key=lambda switch: switch[0])
    running = None
    for number, (time, switch) in enumerate(of_cpu):
        assert running is None or switch.old_thread_id == running, (cpu, time)
        running = switch.new_thread_id
        # The first entry is not a switch. It names the thread that ran at the start.
        if number > 0:
            found[running] += 1
found.pop(0, None)
same("switches", found, truth.switches)
for thread in found:
    assert threads[thread] in processes, f"thread {thread} has no process"
of_truth = {process["name"] for process in truth.all["processes"] if process["id"]}
assert of_truth <= set(processes.values()), of_truth - set(processes.values())

# Slices must nest. Their numbers and durations must be equal to the numbers and durations in the truth file.
open_slices = defaultdict(list)
focus, freezes, keys, marks = [], [], [], []
counts, durations, faults, reads = Counter(), Counter(), 0, 0
# The importer sorts events by time, and events of the same time by their order in the file.
for time, event in sorted(events, key=lambda event: event[0]):
    track = tracks[event.track_uuid]
    if event.type == TrackEvent.TYPE_INSTANT:
        details = {detail.name: detail.uint_value for detail in event.debug_annotations}
        if [categories[iid] for iid in event.category_iids] == ["input"]:
            assert (track.name, event.name) == ("Input", "key_down")
            keys.append((details["key code"], time))
        else:
            assert [categories[iid] for iid in event.category_iids] == ["mark"]
            assert track.name == "Marks"
            marks.append(event.name)
        continue
    stack = open_slices[event.track_uuid]
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        stack.append((time, names[event.name_iid], [categories[iid] for iid in event.category_iids]))
        continue
    assert event.type == TrackEvent.TYPE_SLICE_END
    start, name, category = stack.pop()
    if category == ["interrupt"]:
        kind = name.split(" ")[0]
        counts[KINDS.get(kind, kind)] += 1
        durations[KINDS.get(kind, kind)] += time - start
        assert track.name.startswith("CPU ")
    elif category == ["disk"]:
        reads += name == "read"
    elif category == ["focus"]:
        assert track.name.startswith("Window in focus")
        # The recording session ends a little after the simulated time.
        focus.append((name, start, min(time, truth.duration_ns)))
    elif category == ["freeze"]:
        assert track.name == "Frozen processes"
        freezes.append((name, start, min(time, truth.duration_ns)))
    else:
        assert category == ["memory"] and name == "hard fault" and track.thread.tid in threads
        faults += 1
assert not any(open_slices.values()), "slices do not end"
same("routines", counts, truth.routines)
same("their duration", durations, truth.routine_ns)
same("hard faults", faults, truth.hard_faults)
same("reads", reads, truth.disk_reads)
same_times("focus", sorted(focus, key=lambda slice: slice[1]), truth.focus)
same_times("freezes", sorted(freezes, key=lambda slice: slice[1]), truth.freezes)
same_times("keys", keys, truth.keys)
same("marks", len(marks), truth.marks)
print(f"Perfetto's messages match the truth: {found.total()} switches, {readied} readied threads, "
      f"{counts.total()} routines, {len(focus)} times in focus, {len(freezes)} freezes, "
      f"{len(keys)} keys, {len(marks)} marks")
