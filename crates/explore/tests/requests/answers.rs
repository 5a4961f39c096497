//! Tests that compare answers about a simulated trace with values from loops over its rows.

use std::collections::BTreeMap;

use crate::simulated::{Explored, NOT_CANCELLED, function};
use explore::{Explorer, Id, Number, Value};
use serde::de::DeserializeOwned;
use serde_json::json;
use tables::{CpuRunsView, ImageTracker, InterruptsView, SamplesView, StacksView, Table};

/// Parses a request that the page could send.
fn request<T: DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).expect("a request")
}

fn integer(number: &Option<Number>) -> i64 {
    match number {
        Some(Number::Integer(integer)) => *integer,
        other => panic!("{other:?} is no integer"),
    }
}

fn value(integer: i64) -> Value {
    Value::Number(Number::Integer(integer))
}

/// A run of a thread, with the columns that these tests use.
#[derive(Clone, Debug)]
struct Run {
    start: i64,
    end: i64,
    cpu: u16,
    thread: u32,
    process: String,
    priority: Option<i8>,
    ready: Option<i64>,
}

fn runs(explored: &Explored) -> Vec<Run> {
    let mut runs = Vec::new();
    for batch in explored.batches(Table::CpuRuns) {
        let view = CpuRunsView::new(&batch).unwrap();
        runs.extend((0..view.len()).map(|row| Run {
            start: view.start_ns[row],
            end: view.end_ns[row],
            cpu: view.cpu[row],
            thread: view.thread_id[row],
            process: explored.process(view.process_row.get(row), view.process_id.get(row)),
            priority: view.priority.get(row),
            ready: view.ready_ns.get(row),
        }));
    }
    assert!(runs.len() > 10_000, "{} runs", runs.len());
    runs
}

/// Returns a time range in the middle of the trace.
fn middle(runs: &[Run]) -> (i64, i64) {
    let last = runs.iter().map(|run| run.end).max().unwrap();
    (last / 3, last / 3 * 2)
}

#[test]
fn time_of_processes_is_split_exactly_among_buckets() {
    let explored = Explored::busy();
    let runs = runs(explored);
    let (from, to) = middle(&runs);
    let answer = explored
        .explorer
        .timeline(
            &request(json!({
                "table": "cpu_runs", "by": "process", "measure": "time", "range": [from, to],
                "filter": [{"column": "thread_id", "not_in": [0]}], "buckets": 37, "first": 3,
            })),
            &NOT_CANCELLED,
        )
        .unwrap();
    let mut had: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.thread != 0) {
        for (slice, had) in had
            .entry(&run.process)
            .or_insert_with(|| vec![0; answer.buckets])
            .iter_mut()
            .enumerate()
        {
            let begin = from + slice as i64 * answer.bucket_ns;
            let end = (begin + answer.bucket_ns).min(to);
            *had += (run.end.min(end) - run.start.max(begin)).max(0);
        }
    }
    had.retain(|_, had| had.iter().any(|ns| *ns > 0));
    assert_eq!(answer.series.len(), 3);
    assert_eq!(answer.unit, "ns");
    let mut rest = vec![0; answer.buckets];
    let mut others = 0;
    let least = answer
        .series
        .iter()
        .map(|series| integer(&series.total))
        .min();
    for (process, had) in &had {
        let total: i64 = had.iter().sum();
        match answer.series.iter().find(|series| series.label == *process) {
            Some(series) => {
                let values: Vec<i64> = series.values.iter().map(integer).collect();
                assert_eq!(values, *had, "{process}");
                assert_eq!(integer(&series.total), total);
            }
            None => {
                assert!(Some(total) <= least, "{process} is among the first");
                others += 1;
                rest.iter_mut().zip(had).for_each(|(rest, ns)| *rest += ns);
            }
        }
    }
    let given = answer.rest.expect("others");
    assert_eq!(given.count, others);
    assert_eq!(given.values.iter().map(integer).collect::<Vec<i64>>(), rest);
}

#[test]
fn ready_times_end_where_runs_start() {
    let explored = Explored::busy();
    let runs = runs(explored);
    let (from, to) = middle(&runs);
    let timeline = request(json!({
        "table": "cpu_runs", "measure": "ready_ns", "range": [from, to], "buckets": 41, "first": 1,
    }));
    let answer = explored
        .explorer
        .timeline(&timeline, &NOT_CANCELLED)
        .unwrap();
    assert!(answer.spread);
    assert_eq!(answer.unit, "ns");
    let mut expected = vec![0; answer.buckets];
    for (run, ready) in runs.iter().filter_map(|run| Some((run, run.ready?))) {
        for (slice, expected) in expected.iter_mut().enumerate() {
            let begin = from + slice as i64 * answer.bucket_ns;
            let end = (begin + answer.bucket_ns).min(to);
            *expected += (run.start.min(end) - (run.start - ready).max(begin)).max(0);
        }
    }
    let values: Vec<i64> = answer.series[0].values.iter().map(integer).collect();
    assert_eq!(values, expected);
    assert!(values.iter().sum::<i64>() > 0);
}

#[test]
fn the_longest_ready_time_of_each_bucket_is_found_for_few_and_for_many_groups() {
    let explored = Explored::busy();
    let runs = runs(explored);
    // If there are few groups, they are computed in one pass. If there are many, two passes are needed.
    for (by, buckets) in [("priority", 50), ("thread", 4000)] {
        let answer = explored
            .explorer
            .timeline(
                &request(json!({
                    "table": "cpu_runs", "by": by, "measure": "ready_ns", "function": "max",
                    "buckets": buckets, "first": 2,
                })),
                &NOT_CANCELLED,
            )
            .unwrap();
        let group = |run: &Run| match by {
            "priority" => run.priority.map(|priority| priority.to_string()),
            _ => Some(run.thread.to_string()),
        };
        let mut longest: BTreeMap<(String, i64), i64> = BTreeMap::new();
        let mut totals: BTreeMap<String, i64> = BTreeMap::new();
        for run in &runs {
            let (Some(ready), Some(group)) = (run.ready, group(run)) else {
                continue;
            };
            let slice = (run.end - answer.start_ns) / answer.bucket_ns;
            let longest = longest.entry((group.clone(), slice)).or_insert(0);
            *longest = (*longest).max(ready);
            let total = totals.entry(group).or_insert(0);
            *total = (*total).max(ready);
        }
        let greatest = totals.values().max().unwrap();
        assert_eq!(integer(&answer.series[0].total), *greatest, "{by}");
        for series in answer.series.iter().filter(|series| series.id.is_some()) {
            // The label of a thread with a name is, for example, `worker (132)`. Remove everything except
            // the number.
            let label = series.label.rsplit(['(', ' ']).next().unwrap();
            let label = label.trim_end_matches(')').to_owned();
            for (slice, value) in series.values.iter().enumerate() {
                let expected = longest.get(&(label.clone(), slice as i64)).copied();
                assert_eq!(
                    value.map(|_| integer(value)),
                    expected,
                    "{by} {label} {slice}"
                );
            }
        }
    }
}

#[test]
fn rows_are_counted_in_one_series_without_a_key() {
    let explored = Explored::busy();
    let all = runs(explored).len() as i64;
    let count = |filter: serde_json::Value| {
        let timeline = request(json!({
            "table": "cpu_runs", "buckets": 10, "first": 5, "filter": filter,
        }));
        let answer = explored
            .explorer
            .timeline(&timeline, &NOT_CANCELLED)
            .unwrap();
        assert!(answer.rest.is_none());
        answer
            .series
            .iter()
            .map(|series| integer(&series.total))
            .sum::<i64>()
    };
    assert_eq!(count(json!([])), all);
    let idle = count(json!([{"column": "process", "is": ["Idle (0)"]}]));
    let others = count(json!([{"column": "process", "is_not": ["Idle (0)"]}]));
    assert!(idle > 0 && others > 0);
    assert_eq!(idle + others, all);
}

#[test]
fn groups_under_a_path_are_summed_up_and_sorted() {
    let explored = Explored::busy();
    let runs = runs(explored);
    let (from, to) = middle(&runs);
    let mut pivot = json!({
        "table": "cpu_runs", "keys": ["process", "priority"], "first": 1000, "range": [from, to],
        "aggregates": ["ready_ns:sum", "ready_ns:p90", "ready_ns:count", "ready_ns:mean", "cpu"],
        "sort": {"by": "ready_ns:sum", "descending": true},
    });
    let ask = |pivot: &serde_json::Value| {
        let answer = explored
            .explorer
            .pivot(&request(pivot.clone()), &NOT_CANCELLED);
        answer.unwrap()
    };
    let inside: Vec<&Run> = runs
        .iter()
        .filter(|run| run.start < to && run.end > from)
        .collect();
    let top = ask(&pivot);
    assert_eq!(top.rows, inside.len() as u64);
    let processes: Vec<&str> = top
        .groups
        .iter()
        .map(|group| group.label.as_str())
        .collect();
    assert!(processes.len() > 3, "{processes:?}");
    assert!(top.groups.iter().all(|group| !group.leaf));
    for process in &top.groups {
        pivot["path"] = json!([process.id]);
        let level = ask(&pivot);
        let under: Vec<&&Run> = inside
            .iter()
            .filter(|run| run.process == process.label)
            .collect();
        assert_eq!(level.rows, under.len() as u64, "{}", process.label);
        assert_eq!(level.totals, process.values, "{}", process.label);
        let mut sums = Vec::new();
        for group in &level.groups {
            assert!(group.leaf);
            let priority = group.id.map(|id| id as i8);
            let rows: Vec<&&&Run> = under
                .iter()
                .filter(|run| run.priority == priority)
                .collect();
            assert_eq!(group.rows, rows.len() as u64);
            let mut ready: Vec<i64> = rows.iter().filter_map(|run| run.ready).collect();
            ready.sort_unstable();
            let sum: i64 = ready.iter().sum();
            assert_eq!(group.values[2], value(ready.len() as i64));
            if ready.is_empty() {
                assert_eq!(group.values[..2], [Value::Unknown, Value::Unknown]);
                continue;
            }
            sums.push(sum);
            assert_eq!(group.values[0], value(sum));
            let nearest = ready[(ready.len() * 9).div_ceil(10).max(1) - 1];
            match &group.values[1] {
                Value::Number(Number::Integer(p90)) if level.exact => assert_eq!(*p90, nearest),
                Value::Number(Number::Integer(p90)) => {
                    assert!((p90 - nearest).abs() <= nearest / 50 + 1, "{p90} {nearest}");
                }
                other => panic!("{other:?}"),
            }
            let mean = sum as f64 / ready.len() as f64;
            assert_eq!(group.values[3], Value::Number(Number::Real(mean)));
            let mut cpus: Vec<u16> = rows.iter().map(|run| run.cpu).collect();
            cpus.sort_unstable();
            cpus.dedup();
            let agree = match cpus.as_slice() {
                [one] => Value::Text(one.to_string()),
                several => Value::Different {
                    different: several.len() as u64,
                },
            };
            assert_eq!(group.values[4], agree);
        }
        assert!(sums.is_sorted_by(|a, b| a >= b), "{sums:?}");
    }
}

#[test]
fn time_in_view_is_cut_to_the_range() {
    let explored = Explored::busy();
    let runs = runs(explored);
    let (from, to) = middle(&runs);
    let pivot = request(json!({
        "table": "cpu_runs", "keys": ["cpu"], "aggregates": ["time:sum", "time:max"],
        "range": [from, to], "first": 1000,
    }));
    let answer = explored.explorer.pivot(&pivot, &NOT_CANCELLED).unwrap();
    assert!(answer.groups.len() > 3);
    for cpu in &answer.groups {
        let of_cpu = runs.iter().filter(|run| cpu.id == Some(run.cpu.into()));
        let had = of_cpu.map(|run| (run.end.min(to) - run.start.max(from)).max(0));
        let had: Vec<i64> = had.collect();
        let expected = [had.iter().sum(), *had.iter().max().unwrap()];
        assert_eq!(cpu.values, expected.map(value), "CPU {}", cpu.label);
        assert!(expected[0] <= to - from);
    }
    let rows = request(json!({
        "table": "cpu_runs", "columns": ["start_ns", "end_ns", "time"], "range": [from, to],
        "first": 50,
    }));
    let rows = explored.explorer.rows(&rows, &NOT_CANCELLED).unwrap();
    let inside = runs
        .iter()
        .filter(|run| run.start < to && run.end > from)
        .take(50);
    let expected = inside.map(|run| {
        let time = run.end.min(to) - run.start.max(from);
        [run.start, run.end, time].map(value).to_vec()
    });
    assert_eq!(rows.values, expected.collect::<Vec<_>>());
}

#[test]
fn rows_of_length_0_are_in_ranges_that_contain_their_start() {
    let explored = Explored::busy();
    let runs = runs(explored);
    let rows = |range: [i64; 2]| {
        let pivot = request(json!({"table": "cpu_runs", "range": range, "first": 0}));
        explored
            .explorer
            .pivot(&pivot, &NOT_CANCELLED)
            .unwrap()
            .rows
    };
    let last = runs.iter().map(|run| run.end).max().unwrap();
    assert_eq!(rows([0, last + 1]), runs.len() as u64);
    let moment = runs
        .iter()
        .find(|run| run.start == run.end)
        .expect("a run of length 0");
    let at = moment.start;
    let there = runs
        .iter()
        .filter(|run| run.start <= at && (run.end > at || run.start == at));
    assert_eq!(rows([at, at + 1]), there.count() as u64);
    let before = runs.iter().filter(|run| run.start < at && run.end >= at);
    assert_eq!(rows([at - 1, at]), before.count() as u64);
}

#[test]
fn groups_are_paged_and_searched() {
    let explored = Explored::busy();
    let ask = |more: serde_json::Value| {
        let mut pivot = json!({
            "table": "cpu_runs", "keys": ["process"], "first": 1000,
            "sort": {"by": "key", "descending": false},
        });
        for (key, value) in more.as_object().unwrap() {
            pivot[key] = value.clone();
        }
        explored
            .explorer
            .pivot(&request(pivot), &NOT_CANCELLED)
            .unwrap()
    };
    let all = ask(json!({}));
    let labels: Vec<String> = all
        .groups
        .iter()
        .map(|group| group.label.to_lowercase())
        .collect();
    assert!(labels.is_sorted(), "{labels:?}");
    assert_eq!(all.groups_total, all.groups.len());
    let page = ask(json!({"offset": 2, "first": 3}));
    assert_eq!(page.groups, all.groups[2..5]);
    assert_eq!(page.groups_total, all.groups_total);
    let found = ask(json!({"search": "GAME"}));
    let games: Vec<_> = all
        .groups
        .iter()
        .filter(|group| group.label.contains("game"))
        .collect();
    assert_eq!(found.groups.iter().collect::<Vec<_>>(), games);
    assert_eq!((found.rows, found.groups_total), (all.rows, games.len()));
    let none = ask(json!({"keys": []}));
    assert_eq!((none.rows, none.groups.len()), (all.rows, 0));
}

#[test]
fn rows_are_filtered_sorted_and_paged() {
    let explored = Explored::busy();
    let mut runs = runs(explored);
    runs.retain(|run| {
        run.ready
            .is_some_and(|ready| (1_000..50_000).contains(&ready))
    });
    runs.retain(|run| [0, 2].contains(&run.cpu));
    let all = runs.len();
    assert!(all > 100, "{all}");
    // The sort is stable, so rows with equal values keep the order of the table.
    runs.sort_by_key(|run| std::cmp::Reverse(run.ready));
    let answer = explored
        .explorer
        .rows(
            &request(json!({
                "table": "cpu_runs", "columns": ["end_ns", "ready_ns", "process", "cpu"],
                "filter": [
                    {"column": "ready_ns", "from": 1_000, "to": 50_000},
                    {"column": "cpu", "in": [0, 2]},
                ],
                "sort": {"column": "ready_ns", "descending": true}, "offset": 50, "first": 40,
            })),
            &NOT_CANCELLED,
        )
        .unwrap();
    assert_eq!(answer.rows, all as u64);
    let expected = runs[50..90].iter().map(|run| {
        vec![
            value(run.end),
            value(run.ready.unwrap()),
            Value::Text(run.process.clone()),
            value(run.cpu.into()),
        ]
    });
    assert_eq!(answer.values, expected.collect::<Vec<_>>());
}

#[test]
fn classes_of_values_count_every_row_once() {
    let explored = Explored::busy();
    let runs = runs(explored);
    let heat = explored
        .explorer
        .heat(
            &request(json!({"table": "cpu_runs", "value": "ready_ns", "buckets": 9, "rows": 30})),
            &NOT_CANCELLED,
        )
        .unwrap();
    let histogram = explored
        .explorer
        .histogram(
            &request(json!({
                "table": "cpu_runs", "value": "ready_ns", "by": "priority", "classes": 30,
                "first": 64,
            })),
            &NOT_CANCELLED,
        )
        .unwrap();
    assert_eq!(heat.bounds, histogram.bounds);
    assert!(heat.bounds.len() > 10 && heat.bounds.len() <= 31);
    let classes = heat.bounds.len() - 1;
    let mut over_time = vec![vec![0; classes]; heat.buckets];
    let mut of_priority: BTreeMap<Id, Vec<u64>> = BTreeMap::new();
    let mut below = 0;
    for run in &runs {
        let Some(ready) = run.ready else { continue };
        let class = heat
            .bounds
            .windows(2)
            .position(|b| b[0] < ready && ready <= b[1]);
        let priority = run.priority.map(i64::from);
        let counts = of_priority
            .entry(priority)
            .or_insert_with(|| vec![0; classes]);
        match class {
            Some(class) => {
                over_time[((run.end - heat.start_ns) / heat.bucket_ns) as usize][class] += 1;
                counts[class] += 1;
            }
            None => below += 1,
        }
    }
    assert_eq!(heat.counts, over_time);
    assert_eq!((heat.below, heat.above), (below, 0));
    assert_eq!(histogram.series.len(), of_priority.len());
    for series in &histogram.series {
        assert_eq!(
            Some(&series.counts),
            of_priority.get(&series.id),
            "{}",
            series.label
        );
    }
}

#[test]
fn exact_lanes_contain_the_runs_and_their_wakes() {
    let explored = Explored::busy();
    let runs = runs(explored);
    let (from, to) = middle(&runs);
    let to = from + (to - from) / 20;
    let ask = |range: [i64; 2], width: u32| {
        let lanes = request(json!({"range": range, "width": width, "cpus": [0, 3]}));
        explored.explorer.lanes(&lanes, &NOT_CANCELLED).unwrap()
    };
    let of = |cpu: u16, [from, to]: [i64; 2]| {
        let of_cpu = runs
            .iter()
            .filter(move |run| run.cpu == cpu && run.thread != 0);
        of_cpu.filter(move |run| run.start < to && run.end > from)
    };
    let exact = ask([from, to], 500);
    assert!(exact.exact && !exact.wakes.is_empty());
    for lane in &exact.cpus {
        let spans: Vec<(i64, i64, &str)> = (0..lane.runs.start.len())
            .map(|place| {
                let process = &exact.labels.process[&lane.runs.process[place].unwrap()];
                (
                    lane.runs.start[place],
                    lane.runs.end[place],
                    process.as_str(),
                )
            })
            .collect();
        let expected: Vec<(i64, i64, &str)> = of(lane.cpu, [from, to])
            .map(|run| (run.start.max(from), run.end.min(to), run.process.as_str()))
            .collect();
        assert!(!spans.is_empty());
        assert_eq!(spans, expected, "CPU {}", lane.cpu);
    }
    for wake in &exact.wakes {
        assert!(wake.at_ns <= wake.run_start_ns);
        let ran = of(wake.to_cpu, [from, to]).any(|run| run.start == wake.run_start_ns);
        assert!(ran, "{wake:?}");
    }
}

/// Checks that the filter for doubtful runs selects or excludes exactly these runs. The scenario loses the
/// events of two CPUs from 4 s to 5 s. A thread that ran on one of these CPUs before and after this time has
/// a single run over the whole time. Samples do not confirm this run.
#[test]
fn doubtful_runs_are_filtered_out_on_request() {
    let explored = Explored::new("lost-events", &[], Explorer::MEMORY_BYTES);
    let (mut believed, mut doubted) = ((0u64, 0i64), (0u64, 0i64));
    let mut doubtful_times: Vec<(u16, i64, i64)> = Vec::new();
    for batch in explored.batches(Table::CpuRuns) {
        let view = CpuRunsView::new(&batch).unwrap();
        for row in 0..view.len() {
            let (start, end) = (view.start_ns[row], view.end_ns[row]);
            let lasts_over_loss = start < 4_100_000_000 && end > 4_900_000_000;
            let is_doubtful = view.thread_id[row] != 0 && lasts_over_loss;
            let sum = if is_doubtful {
                &mut doubted
            } else {
                &mut believed
            };
            *sum = (sum.0 + 1, sum.1 + view.cpu_ns[row]);
            if is_doubtful {
                doubtful_times.push((view.cpu[row], start, end));
            }
        }
    }
    assert_eq!(doubted.0, 1, "doubtful runs");
    let sum = |condition: serde_json::Value| {
        let pivot = request(json!({
            "table": "cpu_runs", "keys": [], "path": [], "aggregates": ["rows", "cpu_ns:sum"],
            "filter": [condition], "offset": 0, "first": 1
        }));
        explored.explorer.pivot(&pivot, &NOT_CANCELLED)
    };
    let without = sum(json!({"column": "doubtful", "is_not": ["true"]})).unwrap();
    assert_eq!(
        without.totals,
        [value(believed.0 as i64), value(believed.1)]
    );
    assert!(
        without
            .sql
            .contains("NOT (thread_id <> 0 AND (planned_thread_id IS NOT NULL")
    );
    let only = sum(json!({"column": "doubtful", "is": ["true"]})).unwrap();
    assert_eq!(only.totals, [value(doubted.0 as i64), value(doubted.1)]);
    for odd in [
        json!({"column": "doubtful", "is": ["maybe"]}),
        json!({"column": "doubtful", "in": [1]}),
        json!({"column": "doubtful", "is": ["true"], "is_not": ["true"]}),
    ] {
        let refused = sum(odd).unwrap_err().to_string();
        assert!(refused.contains("is a flag"), "{refused}");
    }
    // Lanes show the times of doubtful runs as unknown times instead of runs.
    let lanes = request(json!({"width": 4000}));
    let lanes = explored.explorer.lanes(&lanes, &NOT_CANCELLED).unwrap();
    for (cpu, start, end) in doubtful_times
        .into_iter()
        .filter(|(_, start, end)| start < end)
    {
        let lane = lanes.cpus.iter().find(|lane| lane.cpu == cpu).unwrap();
        let spans = lane.doubtful.start.iter().zip(&lane.doubtful.end);
        let mut holding = spans.filter(|(from, to)| **from <= start && end <= **to);
        assert!(holding.next().is_some(), "CPU {cpu}: {start} to {end}");
    }
}

#[test]
fn a_healthy_trace_has_no_doubtful_runs() {
    let explored = Explored::busy();
    let timeline = request(json!({
        "table": "cpu_runs", "measure": "time", "buckets": 10, "first": 1,
        "filter": [{"column": "doubtful", "is_not": ["true"]}]
    }));
    let timeline = explored
        .explorer
        .timeline(&timeline, &NOT_CANCELLED)
        .unwrap();
    let all: i64 = runs(explored).iter().map(|run| run.end - run.start).sum();
    assert_eq!(timeline.series[0].total, Some(Number::Integer(all)));
    assert!(!timeline.sql.contains("planned_thread_id"));
    let lanes = explored
        .explorer
        .lanes(&request(json!({"width": 100})), &NOT_CANCELLED);
    let lanes = lanes.unwrap();
    assert!(lanes.cpus.iter().all(|lane| lane.doubtful.start.is_empty()));
}

#[test]
fn with_many_runs_each_pixel_shows_the_process_that_ran_longest() {
    let explored = Explored::new("load", &["events=300000"], Explorer::MEMORY_BYTES);
    let runs = runs(&explored);
    let end = runs.iter().map(|run| run.end).max().unwrap();
    let lanes = request(json!({"range": [0, end], "width": 40}));
    let answer = explored.explorer.lanes(&lanes, &NOT_CANCELLED).unwrap();
    assert!(!answer.exact && answer.wakes.is_empty());
    let width = (end as u64).div_ceil(40) as i64;
    let mut seen = 0;
    for lane in &answer.cpus {
        for place in 0..lane.runs.start.len() {
            let (from, to) = (lane.runs.start[place], lane.runs.end[place]);
            assert_eq!((from % width, to), (0, (from + width).min(end)));
            let mut had: BTreeMap<&str, i64> = BTreeMap::new();
            for run in runs
                .iter()
                .filter(|run| run.cpu == lane.cpu && run.thread != 0)
            {
                let ns = run.end.min(to) - run.start.max(from);
                *had.entry(&run.process).or_default() += ns.max(0);
            }
            let longest = had.values().max().unwrap();
            let process = &answer.labels.process[&lane.runs.process[place].unwrap()];
            assert_eq!(
                had[process.as_str()],
                *longest,
                "CPU {} at {from}",
                lane.cpu
            );
            let busy = had.values().sum::<i64>() as f64 / (to - from) as f64;
            assert!((f64::from(lane.runs.busy[place]) - busy).abs() < 1e-5);
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(!answer.interrupts_exact);
    let mut had: BTreeMap<(u16, i64), BTreeMap<String, i64>> = BTreeMap::new();
    for batch in explored.batches(Table::Interrupts) {
        let view = InterruptsView::new(&batch).unwrap();
        for row in 0..view.len() {
            let (start, end) = (view.start_ns.get(row).unwrap(), view.end_ns[row]);
            for pixel in start / width..=end / width {
                let ns = end.min((pixel + 1) * width) - start.max(pixel * width);
                let had = had.entry((view.cpu[row], pixel)).or_default();
                *had.entry(view.kind.get(row).unwrap().to_owned())
                    .or_default() += ns;
            }
        }
    }
    had.retain(|_, had| had.values().sum::<i64>() > 0);
    let mut seen = 0;
    for lane in &answer.cpus {
        for (place, start) in lane.interrupts.start.iter().enumerate() {
            let had = &had[&(lane.cpu, start / width)];
            let longest = had.values().max().unwrap();
            assert_eq!(
                had[&lane.interrupts.kind[place]], *longest,
                "CPU {}",
                lane.cpu
            );
            seen += 1;
        }
    }
    assert_eq!(seen, had.len());
}

/// Returns the weight of all samples. For each sample with a stack, it also returns the weight and the names
/// of the frames, innermost first.
fn stacks(explored: &Explored) -> (i64, Vec<(i64, Vec<String>)>) {
    let images = ImageTracker::new(&explored.names.images);
    let mut addresses: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for batch in explored.batches(Table::Stacks) {
        let view = StacksView::new(&batch).unwrap();
        for (row, id) in view.stack_id.iter().enumerate() {
            addresses.insert(*id, view.addresses.get(row).to_vec());
        }
    }
    let (mut total, mut stacks) = (0, Vec::new());
    for batch in explored.batches(Table::Samples) {
        let view = SamplesView::new(&batch).unwrap();
        for row in 0..view.len() {
            let weight = view.weight_ns.get(row).unwrap_or(0);
            total += weight;
            let Some(stack) = view.stack_id.get(row) else {
                continue;
            };
            let process = view.process_id.get(row).unwrap_or(0);
            let name = |address: &u64| match images.lookup(process, *address, view.time_ns[row]) {
                Some(image) => function(image as u32, *address),
                None => "?".to_owned(),
            };
            let frames = addresses[&i64::from(stack)].iter().map(name);
            stacks.push((weight, frames.collect()));
        }
    }
    assert!(stacks.len() > 100, "{}", stacks.len());
    (total, stacks)
}

#[test]
fn a_flame_graph_has_the_weight_of_every_path() {
    let explored = Explored::busy();
    let (total, stacks) = stacks(explored);
    for inverted in [false, true] {
        let flame = request(json!({
            "table": "samples", "stack": "stack_id", "weight": "weight_ns", "inverted": inverted,
            "least_share": 0.0,
        }));
        let answer = explored.explorer.flame(&flame, &NOT_CANCELLED).unwrap();
        assert_eq!((answer.total, answer.cut), (total, 0));
        let known: i64 = stacks.iter().map(|(weight, _)| weight).sum();
        assert!((answer.known - known as f64 / total as f64).abs() < 1e-9);
        let mut expected: BTreeMap<Vec<String>, (i64, i64)> = BTreeMap::new();
        for (weight, frames) in &stacks {
            let mut frames = frames.clone();
            if !inverted {
                frames.reverse();
            }
            for depth in 1..=frames.len() {
                let path = expected.entry(frames[..depth].to_vec()).or_default();
                path.1 += weight;
                path.0 += if depth == frames.len() { *weight } else { 0 };
            }
        }
        let mut paths: Vec<Vec<String>> = Vec::new();
        for (place, parent) in answer.nodes.parent.iter().enumerate() {
            let mut path = parent.map_or_else(Vec::new, |parent| paths[parent as usize].clone());
            path.push(answer.frames[answer.nodes.frame[place] as usize].clone());
            let weights = (answer.nodes.own[place], answer.nodes.total[place]);
            assert_eq!(expected.get(&path), Some(&weights), "{path:?}");
            paths.push(path);
        }
        assert_eq!(paths.len(), expected.len());
    }
}

#[test]
fn a_comparison_has_the_paths_of_both_time_ranges() {
    let explored = Explored::busy();
    let (start, end) = middle(&runs(explored));
    let ask = |range: [i64; 2], compare: Option<[i64; 2]>| {
        let flame = request(json!({
            "table": "samples", "stack": "stack_id", "weight": "weight_ns", "range": range,
            "compare": compare, "least_share": 0.0,
        }));
        explored.explorer.flame(&flame, &NOT_CANCELLED).unwrap()
    };
    let totals = |answer: &explore::FlameAnswer, totals: &[i64]| {
        let mut paths: Vec<String> = Vec::new();
        let mut by_path = BTreeMap::new();
        for (place, parent) in answer.nodes.parent.iter().enumerate() {
            let above = parent.map_or_else(String::new, |parent| paths[parent as usize].clone());
            let frame = &answer.frames[answer.nodes.frame[place] as usize];
            paths.push(format!("{above}\n{frame}"));
            if totals[place] > 0 {
                by_path.insert(paths[place].clone(), totals[place]);
            }
        }
        by_path
    };
    let (first, second) = ([0, start], [start, end]);
    let both = ask(first, Some(second));
    let (a, b) = (ask(first, None), ask(second, None));
    assert_eq!((both.total, both.compared_total), (a.total, Some(b.total)));
    assert_eq!(totals(&both, &both.nodes.total), totals(&a, &a.nodes.total));
    let compared = both.nodes.compared.clone().unwrap();
    assert_eq!(totals(&both, &compared), totals(&b, &b.nodes.total));
}

#[test]
fn a_butterfly_counts_a_function_once_per_stack() {
    let explored = Explored::busy();
    let (total, stacks) = stacks(explored);
    let mut expected: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (weight, frames) in &stacks {
        let mut once: Vec<&str> = frames.iter().map(String::as_str).collect();
        expected.entry(once[0]).or_default().0 += weight;
        once.sort_unstable();
        once.dedup();
        for frame in once {
            expected.entry(frame).or_default().1 += weight;
        }
    }
    let mut butterfly = json!({
        "table": "samples", "stack": "stack_id", "weight": "weight_ns", "first": 10_000,
        "least_share": 0.0,
    });
    let ask = |butterfly: &serde_json::Value| {
        let butterfly = request(butterfly.clone());
        explored
            .explorer
            .butterfly(&butterfly, &NOT_CANCELLED)
            .unwrap()
    };
    let answer = ask(&butterfly);
    assert_eq!(answer.total, total);
    let functions = answer.functions.unwrap();
    assert_eq!(functions.len(), expected.len());
    for function in &functions {
        let weights = (function.own, function.total);
        assert_eq!(
            expected[function.label.as_str()],
            weights,
            "{}",
            function.label
        );
    }
    butterfly["frame"] = json!(functions[0].label);
    let one = ask(&butterfly);
    for tree in [one.callers.unwrap(), one.callees.unwrap()] {
        assert_eq!(one.frames[tree.frame[0] as usize], functions[0].label);
        assert_eq!(tree.total[0], functions[0].total);
    }
}

#[test]
fn interrupts_are_grouped_by_module_and_function() {
    let explored = Explored::busy();
    let mut expected: BTreeMap<(String, String), i64> = BTreeMap::new();
    for batch in explored.batches(Table::Interrupts) {
        let view = InterruptsView::new(&batch).unwrap();
        for row in 0..view.len() {
            if !view.kind.get(row).is_some_and(|kind| kind.contains("dpc")) {
                continue;
            }
            let image = view.image_row.get(row).expect("a module");
            let module = explored.names.module_label(Some(image)).unwrap().to_owned();
            let address = view.routine[row];
            let function = format!("{}+{:#x}", function(image, address), address % 4096);
            *expected.entry((module, function)).or_default() +=
                view.exclusive_ns.get(row).unwrap_or(0);
        }
    }
    let mut seen = 0;
    let mut pivot = json!({
        "table": "interrupts", "keys": ["module", "function"], "first": 1000,
        "aggregates": ["exclusive_ns:sum"], "filter": [{"column": "kind", "contains": "DPC"}],
    });
    let ask = |pivot: &serde_json::Value| {
        explored
            .explorer
            .pivot(&request(pivot.clone()), &NOT_CANCELLED)
            .unwrap()
            .groups
    };
    for module in ask(&pivot) {
        pivot["path"] = json!([module.id]);
        for function in ask(&pivot) {
            let key = (module.label.clone(), function.label);
            assert_eq!(function.values, [value(expected[&key])], "{key:?}");
            seen += 1;
        }
    }
    assert!(seen > 1);
    assert_eq!(seen, expected.len());
}

#[test]
fn a_small_memory_changes_no_answer() {
    let small = Explored::new("load", &["events=100000"], 1);
    let pivot = json!({
        "table": "cpu_runs", "keys": ["process"], "first": 1000,
        "aggregates": ["cpu_ns:sum", "ready_ns:max"],
        "filter": [{"column": "cpu", "in": [1]}],
    });
    let ask = |explored: &Explored| {
        explored
            .explorer
            .pivot(&request(pivot.clone()), &NOT_CANCELLED)
            .unwrap()
    };
    assert_eq!(ask(&small), ask(Explored::busy()));
}

#[test]
fn the_overview_shows_tables_that_have_rows() {
    let explored = Explored::busy();
    let graphs = explored.explorer.overview(&NOT_CANCELLED).unwrap().graphs;
    let tables: Vec<&str> = graphs
        .iter()
        .map(|graph| graph.view.table.as_str())
        .collect();
    for table in ["cpu_runs", "interrupts", "disk_io"] {
        assert!(tables.contains(&table), "{table} in {tables:?}");
    }
    let made = explored.explorer.tables().unwrap();
    for table in &tables {
        let info = made.iter().find(|info| info.name == *table).unwrap();
        assert_eq!(info.recorded, Some(true), "{table}");
    }
}

#[test]
fn the_overview_so_far_shows_built_tables() {
    let explored = Explored::new("load", &["events=20000"], Explorer::MEMORY_BYTES);
    let so_far = || explored.explorer.overview_so_far().unwrap().graphs;
    assert!(so_far().is_empty());
    explored
        .explorer
        .prepare(&["interrupts"], &NOT_CANCELLED)
        .unwrap();
    let known = so_far();
    let tables: Vec<&str> = known
        .iter()
        .map(|graph| graph.view.table.as_str())
        .collect();
    assert_eq!(tables, ["interrupts"]);
    let whole = explored.explorer.overview(&NOT_CANCELLED).unwrap().graphs;
    assert!(whole.len() > 1 && whole.contains(&known[0]));
    assert_eq!(so_far(), whole);
}
