//! Tests that the view of a selection shows exactly the rows of the selection.

use std::collections::HashMap;
use std::ops::Range;

use crate::simulated::{Explored, NOT_CANCELLED};
use explore::{PivotRequest, View};
use selection::{Condition, Expression, Order, Selection};
use serde_json::{Value, json};
use tables::{CpuRunsView, Table};

/// Returns the view of a selection as JSON.
fn view_of(selection: &Selection, around: Option<Range<i64>>) -> Value {
    let busy = Explored::busy();
    json!(View::of_selection(selection, around, &busy.names))
}

fn runs() -> Selection {
    Selection::new(Table::CpuRuns)
        .column("process", Expression::Process("process_row"))
        .column("thread_id", Expression::Column("thread_id"))
        .column("ns", Expression::Sum("cpu_ns"))
}

/// Returns the row and the label of the first run's process.
fn a_process() -> (u32, String) {
    let busy = Explored::busy();
    let batches = busy.batches(Table::CpuRuns);
    let rows = batches.iter().flat_map(|batch| {
        let view = CpuRunsView::new(batch).unwrap();
        let rows = (0..view.len()).filter_map(|row| view.process_row.get(row));
        rows.collect::<Vec<_>>()
    });
    let mut labelled = rows.filter_map(|row| Some((row, busy.names.process_label(Some(row))?)));
    labelled.next().expect("a process that ran")
}

#[test]
fn conditions_become_those_of_a_view() {
    let (row, label) = a_process();
    let selection = runs()
        .within("readied_ns", 30..49)
        .filters([
            Condition::is_not("thread_id", 0),
            Condition::is("process_row", row),
            Condition::AtLeast("ready_ns", 6),
            Condition::IsFalse("readied_by_dpc"),
            Condition::is_one_of("previous_wait_reason", &[4, 11]),
            Condition::IsUnknown("planned_thread_id"),
        ])
        .group_by(&["process_row", "thread_id"]);
    let view = view_of(&selection, Some(0..1));
    assert_eq!(view["table"], "cpu_runs");
    assert_eq!(
        view["columns"],
        json!(["process", "thread_id", "|", "rows", "time:sum"])
    );
    assert_eq!(view["range"], json!([30, 49]));
    assert_eq!(
        view["filter"],
        json!([
            {"column": "thread_id", "not_in": [0]},
            {"column": "process", "is": [label]},
            {"column": "ready_ns", "from": 6},
            {"column": "readied_by_dpc", "is": ["false"]},
            {"column": "previous_wait_reason", "in": [4, 11]},
            {"column": "planned_thread_id", "in": [null]},
            {"column": "readied_ns", "from": 30, "to": 49},
        ])
    );
}

#[test]
fn only_rows_without_groups_are_looked_at_around_their_finding() {
    let grouped = runs().group_by(&["process_row", "thread_id"]);
    assert_eq!(view_of(&grouped, Some(3..10))["range"], Value::Null);
    assert_eq!(view_of(&runs(), Some(3..10))["range"], json!([3, 10]));
    assert_eq!(view_of(&runs(), None)["range"], Value::Null);
    let during = grouped.overlapping(std::slice::from_ref(&(4..8)));
    assert_eq!(view_of(&during, Some(3..10))["range"], json!([4, 8]));
}

#[test]
fn rows_are_grouped_by_their_subjects_and_groups_by_their_keys() {
    let columns = |selection: Selection| view_of(&selection, None)["columns"].clone();
    let by_cpu = Selection::new(Table::CpuRuns)
        .column("cpu", Expression::Column("cpu"))
        .column("longest_ns", Expression::Max("ready_ns"))
        .group_by(&["cpu"]);
    assert_eq!(
        columns(by_cpu.clone()),
        json!(["cpu", "|", "rows", "ready_ns:max"])
    );
    // The selection has no column for the subject of these rows, so no key can group them.
    let ungrouped = Selection {
        group_by: Vec::new(),
        ..by_cpu
    };
    assert_eq!(view_of(&ungrouped, None), Value::Null);
}

#[test]
fn a_selection_that_no_view_can_show_has_none() {
    let no_view = [
        runs().filter(Condition::Any(vec![
            Condition::is("cpu", 1),
            Condition::is("cpu", 2),
        ])),
        runs().filter(Condition::is("cpu", 1).negated()),
        runs().filter(Condition::is("process_row", u32::MAX)),
        runs().filter(Condition::AtLeast("no_such_column", 1)),
        runs()
            .computed("awake_ns", "waits_ns - 5")
            .filter(Condition::AtLeast("awake_ns", 1)),
        runs().overlapping(&[0..5, 7..9]),
        Selection::new(Table::SystemConfig).column("kind", Expression::Column("kind")),
    ];
    for selection in no_view {
        assert_eq!(view_of(&selection, None), Value::Null, "{selection:?}");
    }
}

/// Returns the number of rows that a view shows.
fn rows_of(view: &View) -> u64 {
    let bar = view.columns.iter().position(|column| column == View::BAR);
    let request = PivotRequest {
        table: view.table.clone(),
        keys: view.columns[..bar.unwrap()].to_vec(),
        path: Vec::new(),
        aggregates: vec!["rows".to_owned()],
        range: view.range,
        filter: view.filter.clone(),
        sort: None,
        offset: 0,
        first: 1,
        search: None,
    };
    let answer = Explored::busy().explorer.pivot(&request, &NOT_CANCELLED);
    answer.expect("an answer").rows
}

#[test]
fn a_view_has_the_rows_of_its_selection() {
    let busy = Explored::busy();
    let during = 100_000_000..400_000_000;
    let mut expected: HashMap<u32, u64> = HashMap::new();
    for batch in busy.batches(Table::CpuRuns) {
        let view = CpuRunsView::new(&batch).unwrap();
        for row in 0..view.len() {
            let passes = view.readied_by_dpc.get(row) == Some(false)
                && view.ready_ns.get(row).is_some_and(|ns| ns >= 1_000)
                && during.contains(&view.start_ns[row]);
            if let Some(process) = view.process_row.get(row).filter(|_| passes) {
                *expected.entry(process).or_default() += 1;
            }
        }
    }
    let most = expected.into_iter().max_by_key(|(_, runs)| *runs);
    let (process, expected) = most.expect("the scenario has such runs");
    let selection = runs()
        .within("start_ns", during)
        .filters([
            Condition::is("process_row", process),
            Condition::IsFalse("readied_by_dpc"),
            Condition::AtLeast("ready_ns", 1_000),
        ])
        .order(&[Order::ascending("start_ns")]);
    let view = View::of_selection(&selection, None, &busy.names).expect("a view");
    assert_eq!(rows_of(&view), expected);
}
