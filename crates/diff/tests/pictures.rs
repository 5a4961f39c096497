//! Checks the pictures of a comparison against the traces.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use diff::{
    Comparison, CpuWork, Durations, ReadOptions, Recording, SampledCode, ShiftUnit, Source, diff,
};
use explore::{Condition, Explorer, FlameAnswer, FlameRequest};
use simulated::Simulated;
use tables::{
    Cache, CpuRunsView, DoubtfulRuns, InterruptsView, Options, Store, StoredTable, Table,
};

static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

/// Trace of a simulated scenario.
struct Trace {
    _simulated: Simulated,
    store: Arc<Store>,
    explorer: Explorer,
    recording: Recording,
}

impl Trace {
    fn new(scenario: &str, settings: &[&str]) -> Trace {
        Trace::from_simulated(Simulated::new(scenario, settings))
    }

    fn from_simulated(simulated: Simulated) -> Trace {
        let store = imports::open_store(&[(&simulated.trace).into()], Cache::Off).unwrap();
        let store = Arc::new(store);
        let recording =
            Recording::read(&store, &ReadOptions::default(), Options::default()).unwrap();
        Trace {
            explorer: Explorer::new(Arc::clone(&store), None, 1 << 28),
            _simulated: simulated,
            store,
            recording,
        }
    }

    fn source<'t>(&'t self, name: &'t str) -> Source<'t> {
        Source {
            name,
            explorer: &self.explorer,
            recording: &self.recording,
        }
    }

    fn table(&self, table: Table) -> StoredTable {
        self.store.table(table, Options::default()).unwrap()
    }
}

fn compare(before: &[&Trace], after: &[&Trace]) -> Comparison {
    // Recordings cannot be cloned, so the differences are computed from only one trace of each side. One is enough
    // here.
    let [old, new] = [before[0], after[0]].map(|trace| std::slice::from_ref(&trace.recording));
    let differences = diff(old, new, None);
    let before: Vec<Source<'_>> = before
        .iter()
        .map(|trace| trace.source("before.etl"))
        .collect();
    let after: Vec<Source<'_>> = after
        .iter()
        .map(|trace| trace.source("after.etl"))
        .collect();
    Comparison::new(&differences, &before, &after, &NOT_CANCELLED).unwrap()
}

/// Returns the flame graph of one trace, as the page of `laglab open` requests it.
fn own_flame(trace: &Trace, filter: Vec<Condition>) -> FlameAnswer {
    let request = FlameRequest {
        table: "samples".to_owned(),
        stack: "stack_id".to_owned(),
        weight: "weight_ns".to_owned(),
        range: None,
        filter,
        inverted: false,
        root: None,
        compare: None,
        least_share: Some(0.0),
    };
    trace.explorer.flame(&request, &NOT_CANCELLED).unwrap()
}

fn is(column: &str) -> Condition {
    Condition {
        column: column.to_owned(),
        is: Some(vec!["true".to_owned()]),
        ..Condition::default()
    }
}

/// Returns the path of each call (its frames) with the weight of the call. `weights` has one weight for each
/// call.
fn paths(answer: &FlameAnswer, weights: &[i64]) -> Vec<(String, i64)> {
    let nodes = &answer.nodes;
    let mut paths: Vec<String> = Vec::new();
    for (parent, frame) in nodes.parent.iter().zip(&nodes.frame) {
        let name = &answer.frames[*frame as usize];
        paths.push(match parent {
            Some(parent) => format!("{}/{name}", paths[*parent as usize]),
            None => name.clone(),
        });
    }
    let mut all: Vec<(String, i64)> = paths.into_iter().zip(weights.iter().copied()).collect();
    all.retain(|(_, weight)| *weight > 0);
    all.sort();
    all
}

#[test]
fn sides_of_the_union_are_the_flame_graphs_of_the_traces() {
    let before = Trace::new("dpc-flood-teaming", &[]);
    let after = Trace::new("dpc-flood-no-teaming", &[]);
    let comparison = compare(&[&before], &[&after]);
    let dpcs = (comparison.flames.iter()).find(|flame| flame.code == SampledCode::Dpcs);
    let union = &dpcs.expect("samples in DPCs").answer;
    let not_isr = Condition {
        column: "in_isr".to_owned(),
        is_not: Some(vec!["true".to_owned()]),
        ..Condition::default()
    };
    let own = [&before, &after].map(|trace| own_flame(trace, vec![is("in_dpc"), not_isr.clone()]));
    let [old, new] = &own;
    assert!(old.total > 1_000_000_000 && new.total > 1_000_000_000);
    assert_eq!(union.total, new.total);
    assert_eq!(union.compared_total, Some(old.total));
    // Calls below 0.05 % on both sides are left out. All other calls must have the same weights as in the
    // flame graph of each trace.
    let compared = union.nodes.compared.as_ref().unwrap();
    for (weights, of) in [(&union.nodes.total, new), (compared, old)] {
        let (shown, all) = (paths(union, weights), paths(of, &of.nodes.total));
        assert!(shown.len() > 3, "{shown:?}");
        assert!(shown.iter().all(|path| all.binary_search(path).is_ok()));
        let least = of.total / 2_000 + 1;
        let heavy = all.iter().filter(|(_, weight)| *weight >= least);
        for path in heavy {
            assert!(shown.binary_search(path).is_ok(), "{path:?}");
        }
    }
    // The teaming driver is gone after the change.
    let is_teaming = |(path, _): &(String, i64)| path.contains("iansw60e.sys");
    assert!(paths(union, compared).iter().any(is_teaming));
    assert!(!paths(union, &union.nodes.total).iter().any(is_teaming));
}

#[test]
fn traces_of_one_side_are_summed() {
    let traces = ["seed=1", "seed=2", "seed=3"].map(|seed| Trace::new("smb-signing-on", &[seed]));
    let [one, two, three] = &traces;
    let comparison = compare(&[one, two], &[three]);
    let isrs = (comparison.flames.iter()).find(|flame| flame.code == SampledCode::Isrs);
    let totals = [one, two].map(|trace| own_flame(trace, vec![is("in_isr")]).total);
    let sum = totals[0] + totals[1];
    assert!(totals.iter().all(|total| *total > 0));
    assert_eq!(
        isrs.expect("samples in ISRs").answer.compared_total,
        Some(sum)
    );
    let dpcs = (comparison.histograms.iter()).find(|of| of.durations == Durations::Dpc);
    let count: u64 = dpcs.expect("DPCs").before.iter().sum();
    assert_eq!(
        count,
        durations(one).len() as u64 + durations(two).len() as u64
    );
}

/// Returns the durations of all DPCs, in nanoseconds, from the table.
fn durations(trace: &Trace) -> Vec<i64> {
    let mut durations = Vec::new();
    let table = trace.table(Table::Interrupts);
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &["kind", "start_ns", "end_ns"]).unwrap();
        let rows = InterruptsView::new(&batch).unwrap();
        for row in 0..rows.len() {
            if !matches!(rows.kind.get(row), Some("isr" | "msi" | "passive_isr")) {
                let start = rows.start_ns.get(row);
                durations.extend(start.map(|start| rows.end_ns[row] - start));
            }
        }
    }
    durations
}

/// Returns the waits of ready threads for a CPU, in nanoseconds, from the table.
fn waits(trace: &Trace) -> Vec<i64> {
    let doubtful = DoubtfulRuns::read(&trace.store, Options::default()).unwrap();
    let mut waits = Vec::new();
    let table = trace.table(Table::CpuRuns);
    let columns = [
        "start_ns",
        "end_ns",
        "cpu_ns",
        "cpu",
        "thread_id",
        "planned_thread_id",
        "ready_ns",
    ];
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &columns).unwrap();
        let rows = CpuRunsView::new(&batch).unwrap();
        for row in 0..rows.len() {
            let is_counted = rows.thread_id[row] != 0 && !doubtful.is(&rows, row);
            waits.extend(rows.ready_ns.get(row).filter(|ns| is_counted && *ns > 0));
        }
    }
    waits
}

#[test]
fn histograms_count_the_rows_of_the_tables() {
    let before = Trace::new("dpc-flood-teaming", &["duration=3s"]);
    let after = Trace::new("dpc-flood-no-teaming", &["duration=2s"]);
    let comparison = compare(&[&before], &[&after]);
    assert_eq!(comparison.histograms.len(), 2);
    for histogram in &comparison.histograms {
        let bounds = &histogram.bounds;
        assert!(bounds.is_sorted_by(|a, b| a < b));
        assert!(bounds.contains(&100_000), "{bounds:?}");
        for (counts, of) in [(&histogram.before, &before), (&histogram.after, &after)] {
            let values = match histogram.durations {
                Durations::Dpc => durations(of),
                Durations::Ready => waits(of),
            };
            assert!(values.len() > 100);
            let count = |from: i64, to: i64| {
                let within = values.iter().filter(|ns| from < **ns && **ns <= to);
                within.count() as u64
            };
            let expected: Vec<u64> = bounds
                .windows(2)
                .map(|class| count(class[0], class[1]))
                .collect();
            assert_eq!(*counts, expected, "{:?}", histogram.durations);
            assert_eq!(expected.iter().sum::<u64>(), values.len() as u64);
        }
        let values = [&before, &after].map(|trace| match histogram.durations {
            Durations::Dpc => durations(trace),
            Durations::Ready => waits(trace),
        });
        let expected = distance(values);
        let error = (histogram.moved_ns / expected - 1.0).abs();
        assert!(error < 0.02, "{} instead of {expected}", histogram.moved_ns);
    }
}

/// Returns the mean distance of the quantiles of two sides, which is their Wasserstein distance.
fn distance(mut sides: [Vec<i64>; 2]) -> f64 {
    const PLACES: usize = 200_000;
    sides.iter_mut().for_each(|side| side.sort_unstable());
    let at = |side: &Vec<i64>, place: usize| side[(2 * place + 1) * side.len() / (2 * PLACES)];
    let distances = (0..PLACES).map(|place| {
        let [before, after] = sides.each_ref().map(|side| at(side, place));
        before.abs_diff(after) as f64
    });
    distances.sum::<f64>() / PLACES as f64
}

/// Compares machines without and with signed SMB packets. Signing lengthens the DPCs from 28 µs to 817 µs (truth of
/// the scenarios).
#[test]
fn shift_functions_show_longer_dpcs() {
    let trace =
        |scenario: &str, seed: u32| Trace::new(scenario, &[&format!("seed={seed}"), "duration=4s"]);
    let off: Vec<Trace> = (1..=4).map(|seed| trace("smb-signing-off", seed)).collect();
    let on: Vec<Trace> = (5..=8).map(|seed| trace("smb-signing-on", seed)).collect();
    let all = |side_name: &'static str| -> Vec<&Trace> {
        let side = if side_name == "off" { &off } else { &on };
        side.iter().collect()
    };
    let single = compare(&[&off[0]], &[&on[0]]);
    let several = compare(&all("off"), &all("on"));
    for (comparison, unit, units) in [
        (&single, ShiftUnit::Blocks, 8),
        (&several, ShiftUnit::Traces, 4),
    ] {
        let dpcs = &comparison.histograms[0];
        assert_eq!(dpcs.durations, Durations::Dpc);
        assert_eq!((dpcs.shift_unit, dpcs.units_after), (unit, units));
        let half = dpcs.shifts.iter().find(|shift| shift.share == 0.5).unwrap();
        // Eleven quantiles are compared at once. With four traces on each side, chance can explain any change of one
        // of them.
        assert_eq!(half.differs, unit == ShiftUnit::Blocks, "{half:?}");
        assert!(half.low > 10.0 && half.ratio < 60.0, "{half:?}");
        assert!(
            (half.after_ns / half.before_ns / half.ratio - 1.0).abs() < 0.2,
            "{half:?}"
        );
    }
    // All traces have strips of their CPUs.
    let strips = &several.strips[0];
    assert_eq!(
        (strips.before.len(), strips.after.len(), strips.omitted),
        (4, 4, 0)
    );
    let none = compare(&[&off[0]], &[&off[0]]);
    let shifts = none
        .histograms
        .iter()
        .flat_map(|histogram| &histogram.shifts);
    assert!(shifts.clone().count() > 5);
    assert!(
        shifts
            .clone()
            .all(|shift| shift.ratio == 1.0 && !shift.differs)
    );
    assert_eq!(none.histograms[0].moved_ns, 0.0);
}

#[test]
fn shift_functions_of_equal_machines_rarely_differ() {
    let traces: Vec<Trace> = (1..=12)
        .map(|seed| Trace::new("healthy", &[&format!("seed={seed}"), "duration=10s"]))
        .collect();
    let (mut functions, mut wrong) = (0, 0);
    for (n, before) in traces.iter().enumerate() {
        for after in &traces[..n] {
            for histogram in compare(&[before], &[after]).histograms {
                functions += 1;
                wrong += u32::from(histogram.shifts.iter().any(|shift| shift.differs));
            }
        }
    }
    // The expected number is at most 5 % of 132, which is 6.6. Three standard deviations more are 14.
    assert_eq!(functions, 132);
    assert!(wrong <= 14, "{wrong} of {functions}");
}

/// Simulates a program that waits for a disk and for a server. After the change, both take longer.
#[test]
fn waits_have_the_times_of_the_truth() {
    let simulated = |answer: &str, disk: &str| {
        let text = format!(
            r#"
            extends = "healthy"
            title = "A program waits for a server"
            duration = "10s"
            [[add.process]]
            name = "App.exe"
            [[add.process.thread]]
            name = "work"
            program = [ {{ forever = [
              {{ sleep = "20ms" }},
              {{ read = "64KiB", file = 'C:\data.bin', measure = "read" }},
              {{ set = "request" }},
              {{ wait = "answer", measure = "answer" }},
            ] }} ]
            [[add.process]]
            name = "server.exe"
            [[add.process.thread]]
            name = "answers"
            program = [ {{ forever = [ {{ wait = "request", reason = "WrQueue" }}, {{ run = "{answer}" }}, {{ set = "answer" }} ] }} ]
            "#
        );
        Simulated::of_text("server", &text, &[&format!("disk.0.service={disk}")])
    };
    let (old, new) = (simulated("2ms", "5ms"), simulated("6ms", "12ms"));
    let truth = [&old, &new].map(|trace| {
        let measured = simulated::list(&trace.truth, "measured");
        ["answer", "read"].map(|name| {
            let trace = measured.iter().find(|it| it["name"] == name).unwrap();
            let [count, median] =
                ["count", "median_ns"].map(|field| simulated::number(trace, field));
            (count as f64, median as f64)
        })
    });
    let (before, after) = (Trace::from_simulated(old), Trace::from_simulated(new));
    let waits = compare(&[&before], &[&after]).waits.unwrap();
    let find = |waker: Option<&str>| {
        let mut edges = waits.edges.iter();
        let edge = edges.find(|it| it.waiting == "App.exe" && it.waker.as_deref() == waker);
        edge.unwrap_or_else(|| panic!("no {waker:?} in {waits:?}"))
    };
    let answer = find(Some("server.exe"));
    for (count, ns, (true_count, true_ns), of) in [
        (answer.before_count, answer.before_ns, truth[0][0], &before),
        (answer.after_count, answer.after_ns, truth[1][0], &after),
    ] {
        assert!(
            (count * of.recording.seconds - true_count).abs() <= 1.5,
            "{answer:?}"
        );
        // The model measures the wait together with the following wait for a CPU.
        let mean = ns / count;
        assert!((mean / true_ns - 1.0).abs() < 0.05, "{mean}, not {true_ns}");
    }
    assert!(answer.after_ns / answer.after_count > 2.0 * answer.before_ns / answer.before_count);
    // DPCs of the disk end the waits for the disk. Waits of the server for requests are left out.
    let disk = find(None);
    let grown = disk.after_ns / disk.after_count - disk.before_ns / disk.before_count;
    let truth = truth[1][1].1 - truth[0][1].1;
    assert!(
        (grown / truth - 1.0).abs() < 0.1,
        "{grown}, not {truth}: {disk:?}"
    );
    assert!(waits.edges.iter().all(|it| it.waiting != "server.exe"));
}

#[test]
fn strips_have_the_time_of_the_tables() {
    let before = Trace::new("dpc-flood-teaming", &["duration=3s"]);
    let after = Trace::new("dpc-flood-no-teaming", &["duration=2s"]);
    let comparison = compare(&[&before], &[&after]);
    let dpcs = comparison
        .strips
        .iter()
        .find(|strips| strips.work == CpuWork::Dpcs);
    let dpcs = dpcs.expect("DPCs");
    for (side, of) in [(&dpcs.before[0], &before), (&dpcs.after[0], &after)] {
        let sum: i64 = durations(of).iter().sum();
        let [start, end] = of.recording.range_ns();
        let drawn = side.cpus.iter().flat_map(|cpu| {
            assert!(cpu.shares.iter().all(|share| (0.0..=1.0).contains(share)));
            let length = |bucket: usize| {
                let left = end - start - bucket as i64 * dpcs.bucket_ns;
                left.min(dpcs.bucket_ns) as f64
            };
            let shares = cpu.shares.iter().enumerate();
            shares.map(move |(bucket, share)| share * length(bucket))
        });
        let drawn: f64 = drawn.sum();
        // Shares are rounded to thousandths.
        let error = (drawn - sum as f64).abs() / sum as f64;
        assert!(error < 0.005, "{drawn} ns instead of {sum}");
    }
    let longer = dpcs.before[0].cpus[0].shares.len();
    assert!(longer > dpcs.after[0].cpus[0].shares.len() && longer <= 241);
}

#[test]
fn waterfalls_lead_from_the_total_before_to_the_total_after() {
    let before = Trace::new("dpc-flood-teaming", &[]);
    let after = Trace::new("dpc-flood-no-teaming", &[]);
    let comparison = compare(&[&before], &[&after]);
    assert!(comparison.tables.len() > 8);
    // The traffic differs between the sides, so the tables per KiB come first.
    assert_eq!(comparison.tables[0].unit, "per KiB of network traffic");
    for table in &comparison.tables {
        let waterfall = &table.waterfall;
        let steps: f64 = waterfall.steps.iter().map(|step| step.ns).sum();
        let end = waterfall.before_ns + steps + waterfall.others_ns;
        let scale = waterfall.before_ns.max(waterfall.after_ns);
        assert!(
            (end - waterfall.after_ns).abs() <= 1e-6 * scale,
            "{table:?}"
        );
    }
    // The DPC time before the change must be equal to the DPC time in the table.
    let is_dpcs = |title: &str, unit: &str| title == "DPCs" && unit == "per second";
    let dpcs = comparison
        .tables
        .iter()
        .find(|rows| is_dpcs(rows.title, &rows.unit));
    let dpcs = dpcs.expect("DPCs per second");
    let mut exclusive = 0.0;
    let table = before.table(Table::Interrupts);
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &["kind", "exclusive_ns"]).unwrap();
        let rows = InterruptsView::new(&batch).unwrap();
        for row in 0..rows.len() {
            if !matches!(rows.kind.get(row), Some("isr" | "msi" | "passive_isr")) {
                exclusive += rows.exclusive_ns.get(row).unwrap_or(0) as f64;
            }
        }
    }
    let expected = exclusive / before.recording.seconds;
    let error = (dpcs.waterfall.before_ns - expected).abs() / expected;
    assert!(
        error < 1e-6,
        "{} instead of {expected}",
        dpcs.waterfall.before_ns
    );
}

#[test]
fn a_trace_without_a_kind_of_events_has_no_picture_of_it() {
    let whole = Trace::new("healthy", &["duration=2s"]);
    let real = testdata::path("etl/perfview__SelfDescribingSingleEvent.etl");
    let store = Arc::new(imports::open_store(&[real], Cache::Off).unwrap());
    let empty = Recording::read(&store, &ReadOptions::default(), Options::default()).unwrap();
    let explorer = Explorer::new(Arc::clone(&store), None, 1 << 28);
    let differences = diff(
        std::slice::from_ref(&whole.recording),
        std::slice::from_ref(&empty),
        None,
    );
    let after = Source {
        name: "empty.etl",
        explorer: &explorer,
        recording: &empty,
    };
    let before = whole.source("whole.etl");
    let comparison = Comparison::new(&differences, &[before], &[after], &NOT_CANCELLED).unwrap();
    assert!(comparison.tables.is_empty() && comparison.flames.is_empty());
    assert!(comparison.histograms.is_empty() && comparison.strips.is_empty());
    let is_missing = |row: &&diff::BesidesRow| row.after.starts_with("not recorded");
    assert!(comparison.besides.iter().filter(is_missing).count() >= 5);
}
