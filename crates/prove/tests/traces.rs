//! Metrics of simulated traces. They are compared with the true values of the simulation and with other
//! tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use prove::traces::{self, InTrace};
use prove::{Group, Question, Sides, Summary, TraceMetric, judge};
use simulated::{Simulated, list, number};
use statistics::Design;
use tables::{Cache, Options, Store, Table};

fn store(trace: &str) -> Store {
    imports::open_store(&[trace.into()], Cache::Off).unwrap()
}

fn read(store: &Store, metric: &str) -> InTrace {
    let metric: TraceMetric = metric.parse().unwrap();
    traces::read(store, "run".to_owned(), &metric, Options::default()).unwrap()
}

/// Least value, median and greatest value of a metric.
fn spread(run: &prove::Run) -> [f64; 3] {
    let group = || Group {
        name: String::new(),
        column: None,
        unit: prove::Unit::Nanoseconds,
        runs: vec![run.clone()],
    };
    let both = Sides {
        name: String::new(),
        design: Design::Unpaired,
        before: group(),
        after: group(),
        alone: [0, 0],
        same_names: 0,
        has_looks: false,
    };
    let picture = prove::picture(&both, &Summary::read(&both).unwrap()).unwrap();
    let histogram = picture.histogram.unwrap();
    [
        histogram.low,
        picture.runs[0][0].unwrap(),
        histogram.greatest,
    ]
}

/// Returns the number of samples of a metric.
fn samples(store: &Store, metric: &str) -> u64 {
    read(store, metric).unwrap().samples()
}

/// Compares simulated traces of two scenarios. Each seed gives one run.
fn compared(before: &str, after: &str, metric: &str) -> prove::Judgement {
    let metric: TraceMetric = metric.parse().unwrap();
    let group = |scenario: &str| -> Group {
        let runs = (1..=4).map(|seed| {
            let simulated = Simulated::new(scenario, &[&format!("seed={seed}")]);
            let run = traces::read(
                &store(&simulated.trace),
                seed.to_string(),
                &metric,
                Options::default(),
            );
            run.unwrap().unwrap()
        });
        traces::group(&metric, runs.collect())
    };
    let both = Sides {
        name: metric.to_string(),
        design: Design::Unpaired,
        before: group(before),
        after: group(after),
        alone: [0, 0],
        same_names: 0,
        has_looks: false,
    };
    let summary = Summary::read(&both).unwrap();
    judge(&both, &summary, Question { margin: 0.02 }).unwrap()
}

/// Checks that the durations of DPCs decrease. The mean durations in the scenarios are 17.9 and 7.0 µs (true
/// values of the simulation).
#[test]
fn durations_of_dpcs_change_as_the_scenario_says() {
    let judgement = compared("usb-wdf01000", "usb-amdxhc31", "dpc");
    let median = &judgement.lines[0];
    let change = median.comparison.unwrap().change;
    assert!(change.high < 1.0 && change.low > 0.1, "{change:?}");
}

#[test]
fn parts_of_a_metric_add_up() {
    let healthy = Simulated::new("healthy", &[]);
    let store = store(&healthy.trace);
    let all = samples(&store, "disk");
    let kinds = ["read", "write", "flush"].map(|kind| samples(&store, &format!("disk:{kind}")));
    assert!(all > 0);
    assert_eq!(kinds.iter().sum::<u64>(), all);
    let table = store.table(Table::DiskIo, Options::default()).unwrap();
    assert_eq!(all, table.rows() as u64);
    let table = store.table(Table::Interrupts, Options::default()).unwrap();
    let routines = samples(&store, "dpc") + samples(&store, "isr");
    assert_eq!(routines, table.rows() as u64);
    assert_eq!(samples(&store, "dpc:no-such.sys"), 0);
    let metric: TraceMetric = "dpc:ndiss.sys".parse().unwrap();
    let similar = traces::similar_name(&store, &metric, Options::default()).unwrap();
    assert_eq!(similar.as_deref(), Some("ndis.sys"));
    // If the trace has the exact name, another name is no help.
    let metric: TraceMetric = "isr:NDIS.SYS".parse().unwrap();
    let known = traces::similar_name(&store, &metric, Options::default()).unwrap();
    assert_eq!(known, None);
}

/// Checks that the longest wait in the scenario `rank-stall` is the wait of the game. The true length of this
/// wait is 19.493 s.
#[test]
fn the_longest_wait_is_that_of_the_truth() {
    let stall = Simulated::new("rank-stall", &[]);
    let [_, _, longest] = spread(&read(&store(&stall.trace), "ready").unwrap());
    assert!((longest / 19.493e9 - 1.0).abs() < 0.001, "{longest}");
}

/// Compares the sleeps of one of two threads with the times that the model measured.
#[test]
fn sleeps_take_the_times_of_the_truth() {
    let text = r#"
        extends = "healthy"
        title = "A program sleeps"
        duration = "20s"
        [[add.process]]
        name = "app.exe"
        [[add.process.thread]]
        name = "sleeper"
        program = [ { forever = [ { sleep = "uniform(1ms, 90ms)", measure = "sleeps" }, { run = "1ms" } ] } ]
        [[add.process.thread]]
        name = "waiter"
        program = [ { forever = [ { wait = "pulse" }, { sleep = "200ms" } ] } ]
        [[add.process.thread]]
        name = "pulse"
        program = [ { forever = [ { sleep = "1s" }, { set = "pulse" } ] } ]
        "#;
    let simulated = Simulated::of_text("sleeps", text, &[]);
    let mut measured = list(&simulated.truth, "measured").iter();
    let truth = measured.find(|it| it["name"] == "sleeps").unwrap();
    let store = store(&simulated.trace);
    let run = read(&store, "sleep:app.exe/sleeper").unwrap();
    assert_eq!(run.samples() as i64, number(truth, "count"));
    let found = spread(&run);
    let truth = ["min_ns", "median_ns", "max_ns"].map(|name| number(truth, name) as f64);
    // The model measures from the call of the sleep to its return. The trace has the time between two context
    // switches.
    for (place, (found, truth)) in found.into_iter().zip(truth).enumerate() {
        // The median of an even number of sleeps can be either of the two middle values, so its tolerance is larger.
        let tolerance = if place == 1 { 0.02 * truth } else { 20_000.0 };
        assert!(
            (found - truth).abs() <= tolerance,
            "{place}: {found}, not {truth}"
        );
    }
    // Waits for an object are no sleeps, so the thread `waiter` has only its sleeps of 200 ms.
    let waiter = read(&store, "sleep:app.exe/waiter").unwrap();
    assert!((18..=20).contains(&waiter.samples()), "{waiter:?}");
    let [least, _, greatest] = spread(&waiter);
    assert!(least >= 200e6 && greatest < 220e6, "{least} to {greatest}");
}

/// Compares times from a key press to the resulting focus change with the moments of the model.
#[test]
fn focus_follows_input_after_the_times_of_the_truth() {
    let mut text = r#"
        extends = "healthy"
        title = "Keys bring a program to the front"
        duration = "30s"
        [[add.process]]
        name = "app.exe"
        [[add.process.thread]]
        name = "window"
        program = [ { forever = [ { wait = "pressed" }, { run = "uniform(5ms, 50ms)" }, { sleep = "exp(100ms)" }, { focus = "app.exe" } ] } ]
        "#
    .to_owned();
    // Two keys are pressed, and only the time from the second key counts. Later, the focus goes back without a key.
    for second in 1..28 {
        text.push_str(&format!(
            r#"
            [[at]]
            time = "{second}.000s"
            key = 65
            [[at]]
            time = "{second}.010s"
            key = 13
            [[at]]
            time = "{second}.010s"
            set = "pressed"
            [[at]]
            time = "{second}.950s"
            focus = "explorer.exe"
            "#
        ));
    }
    let simulated = Simulated::of_text("keys", &text, &[]);
    let (mut last_key, mut last_focus, mut expected) = (None, i64::MIN, Vec::new());
    for moment in list(&simulated.truth, "moments") {
        let at = number(moment, "at_ns");
        match (&moment["what"], &moment["process"]["name"]) {
            (what, _) if what == "key" => last_key = Some(at),
            (what, process) if what == "focus" => {
                let key = last_key.filter(|key| *key > last_focus);
                if let Some(key) = key.filter(|_| process == "app.exe") {
                    expected.push((at - key) as f64);
                }
                last_focus = at;
            }
            _ => {}
        }
    }
    expected.sort_by(f64::total_cmp);
    assert!(expected.len() > 20, "{expected:?}");
    let store = store(&simulated.trace);
    let run = read(&store, "input-to-focus:app.exe").unwrap();
    assert_eq!(run.samples() as usize, expected.len());
    let (first, last) = (expected[0], expected[expected.len() - 1]);
    let median = expected[(expected.len() - 1) / 2];
    for (found, truth) in spread(&run).into_iter().zip([first, median, last]) {
        // Times of events are multiples of 100 ns, so a difference of two times may be wrong by about 100 ns. The
        // tolerance is ten times as large.
        assert!((found - truth).abs() <= 1_000.0, "{found}, not {truth}");
    }
    // No other change of the focus follows an input.
    assert_eq!(samples(&store, "input-to-focus"), run.samples());
}

#[test]
fn kinds_that_a_trace_lacks_are_named() {
    let file = testdata::path("etl/filtrace__etw.etl");
    let store = imports::open_store(&[file], Cache::Off).unwrap();
    let missing = read(&store, "disk").map(|run| run.samples());
    assert_eq!(missing, Err(Table::DiskIo));
    assert_eq!(read(&store, "input-to-focus").err(), Some(Table::Input));
}

/// A second has 10⁹ ns. So a number of seconds can be finite and its number of nanoseconds infinite.
#[test]
fn results_of_queries_that_are_too_large_are_refused() {
    let result = |seconds: f64| {
        let column: ArrayRef = Arc::new(Float64Array::from(vec![seconds]));
        let rows = RecordBatch::try_from_iter([("ready_s", column)]).unwrap();
        traces::SingleValue::default().add(&rows)
    };
    assert_eq!(result(1.5), Ok(()));
    assert_eq!(result(0.0), Ok(()));
    for wrong in [1e300, 1.7e308, 1e-200] {
        let error = result(wrong).unwrap_err();
        assert!(
            error.starts_with("the result is too large or too small; give 0, or"),
            "{error}"
        );
    }
}
