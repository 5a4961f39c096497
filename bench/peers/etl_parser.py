"""Counts the events of a trace with etl-parser."""

import sys

from etl.etl import IEtlFileObserver, build_from_stream


class Counter(IEtlFileObserver):
    count = 0

    def one(self, _event):
        self.count += 1

    on_system_trace = on_perfinfo_trace = on_trace_record = on_event_record = on_win_trace = one


with open(sys.argv[1], "rb") as file:
    trace = build_from_stream(file.read())
counter = Counter()
trace.parse(counter)
print(counter.count)
