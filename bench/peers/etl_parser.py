"""Counts the events of a trace by kind of header with etl-parser, which skips the events of the header buffer."""

import sys
from collections import Counter

from etl.etl import IEtlFileObserver, build_from_stream


class Kinds(IEtlFileObserver):
    counts = Counter()

    def one(self, event):
        self.counts[type(event).__name__] += 1

    on_system_trace = on_perfinfo_trace = on_trace_record = on_event_record = on_win_trace = one


with open(sys.argv[1], "rb") as file:
    trace = build_from_stream(file.read())
kinds = Kinds()
trace.parse(kinds)
for kind, count in kinds.counts.items():
    print(kind, count)
