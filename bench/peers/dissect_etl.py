"""Counts the events of a trace with dissect.etl, an external program here (AGPL; nothing of it is linked)."""

import sys

from dissect.etl import ETL

with open(sys.argv[1], "rb") as file:
    print(sum(1 for _ in ETL(file)))
