//! Metrics of simulated traces. They are compared with the true values of the simulation and with other
//! tables.

use prove::traces::{self, InTrace};
use prove::{Group, Question, Sides, Summary, TraceMetric, judge};
use simulated::Simulated;
use statistics::Design;
use tables::{Cache, Options, Store, Table};

fn store(trace: &str) -> Store {
    Store::open(&[trace.into()], Cache::Off).unwrap()
}

fn read(store: &Store, metric: &str) -> InTrace {
    let metric: TraceMetric = metric.parse().unwrap();
    traces::read(store, "run".to_owned(), &metric, Options::default()).unwrap()
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
}

/// Checks the longest wait of the game in the scenario `rank-stall`. Its true length is 19.493 s.
#[test]
fn the_longest_wait_is_that_of_the_truth() {
    let stall = Simulated::new("rank-stall", &[]);
    let store = store(&stall.trace);
    let metric = "ready".parse().unwrap();
    let run = traces::read(&store, String::new(), &metric, Options::default());
    let run = run.unwrap().unwrap();
    let both = Sides {
        name: String::new(),
        design: Design::Unpaired,
        before: traces::group(&metric, vec![run.clone()]),
        after: traces::group(&metric, vec![run]),
    };
    let picture = prove::picture(&both, &Summary::read(&both).unwrap()).unwrap();
    let longest = picture.histogram.unwrap().greatest;
    assert!((longest / 19.493e9 - 1.0).abs() < 0.001, "{longest}");
}

#[test]
fn kinds_that_a_trace_lacks_are_named() {
    let file = testdata::path("etl/filtrace__etw.etl");
    let store = Store::open(&[file], Cache::Off).unwrap();
    let missing = read(&store, "disk").map(|run| run.samples());
    assert_eq!(missing, Err(Table::DiskIo));
    assert_eq!(read(&store, "input-to-focus").err(), Some(Table::Input));
}
