"""Reads exported tables with pyarrow and DuckDB and compares them with the truth of their traces.

usage: read_parquet.py FOLDER NAME=TRUTH...
"""

import sys
from collections import Counter

import duckdb
import pyarrow.dataset
import pyarrow.parquet

from truth import KINDS, Truth, same

folder = sys.argv[1]
truths = {name: Truth(path) for name, path in (pair.split("=", 1) for pair in sys.argv[2:])}


def by_kind(rows):
    """Sums rows of (trace, kind, count, ns). Returns the counts and the durations of each trace."""
    counts, durations = {name: Counter() for name in truths}, {name: Counter() for name in truths}
    for trace, kind, count, ns in rows:
        counts[trace][KINDS.get(kind, kind)] += count
        durations[trace][KINDS.get(kind, kind)] += ns
    return counts, durations


def check(reader, routines, switches, samples):
    counts, durations = by_kind(routines)
    for name, truth in truths.items():
        same(f"{reader}: routines of {name}", counts[name], truth.routines)
        same(f"{reader}: their duration in {name}", durations[name], truth.routine_ns)
        found = Counter({thread: n for trace, thread, n in switches if trace == name})
        found.pop(0, None)
        same(f"{reader}: switches of {name}", found, truth.switches)
        found = sum(n for trace, n in samples if trace == name)
        same(f"{reader}: samples of {name}", found, truth.samples.total())


# Reads a table of all traces with DuckDB.
def sql(table, columns):
    files = f"read_parquet('{folder}/{table}/*/*.parquet', hive_partitioning = true)"
    return duckdb.sql(f"select {columns} from {files} group by all").fetchall()


check(
    "DuckDB",
    sql("interrupts", "trace, kind::varchar, count(*), sum(duration_ns)::bigint"),
    sql("context_switches", "trace, new_thread_id, count(*)"),
    sql("samples", "trace, count(*)"),
)


# Reads the same tables with pyarrow.
def arrow(table, keys, sums=()):
    dataset = pyarrow.dataset.dataset(f"{folder}/{table}", partitioning="hive")
    read = dataset.to_table(columns=[*keys, *sums])
    for key in keys:
        at = read.column_names.index(key)
        if pyarrow.types.is_dictionary(read.schema.field(key).type):
            decoded = read.column(key).cast(read.schema.field(key).type.value_type)
            read = read.set_column(at, key, decoded)
    grouped = read.group_by(keys).aggregate([([], "count_all")] + [(column, "sum") for column in sums])
    columns = keys + ["count_all"] + [f"{column}_sum" for column in sums]
    return [tuple(row[column] for column in columns) for row in grouped.to_pylist()]


check(
    "Arrow",
    arrow("interrupts", ["trace", "kind"], ["duration_ns"]),
    arrow("context_switches", ["trace", "new_thread_id"]),
    arrow("samples", ["trace"]),
)

# Checks the descriptions of columns, and the statistics with which readers skip row groups.
for name in truths:
    file = pyarrow.parquet.ParquetFile(f"{folder}/interrupts/trace={name}/part-0.parquet")
    field = file.schema_arrow.field("end_ns")
    meaning = field.metadata[b"meaning"].decode()
    assert "end" in meaning.lower(), f"meaning of end_ns: {meaning}"
    group = file.metadata.row_group(0)
    column = group.column(file.schema_arrow.get_field_index("end_ns"))
    same("compression", column.compression, "ZSTD")
    assert column.statistics.min <= column.statistics.max
print(f"pyarrow {pyarrow.__version__} and DuckDB {duckdb.__version__} agree with the truth")
