"""Counts the events of a trace by kind of header with dissect.etl (AGPL). It runs as a separate process; nothing of it
is linked."""

import sys
from collections import Counter

from dissect.etl import ETL

with open(sys.argv[1], "rb") as file:
    counts = Counter(type(event.header).__name__ for event in ETL(file))
for kind, count in counts.items():
    print(kind, count)
