//! Helpers that read service routines and DPCs from a trace and from the truth.

use std::collections::BTreeMap;

use serde_json::Value;
use tables::ImageTracker;
use tables::InterruptKind;

use crate::read_back::Run;

/// An execution of a service routine or DPC in the trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Routine {
    /// `isr`, `dpc`, `threaded_dpc` or `timer_dpc`.
    pub(crate) kind: &'static str,
    /// File name of the module that contains the routine.
    pub(crate) module: String,
    pub(crate) cpu: u16,
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Time in nanoseconds without nested routines.
    pub(crate) exclusive: i64,
    /// Number of pieces into which nested routines split this execution.
    pub(crate) fragments: u64,
}

/// Sums over executions of routines: count, inclusive and exclusive nanoseconds, fragments.
pub(crate) type Sums = (u64, i64, i64, u64);

impl Run {
    /// Returns all service routines and DPCs in the trace by processor, sorted by their end.
    pub(crate) fn routines(&self) -> Vec<Routine> {
        let tables = &self.tables;
        let images = ImageTracker::new(&tables.images);
        let mut modules: BTreeMap<u64, String> = BTreeMap::new();
        let mut all = Vec::new();
        for rows in &tables.interrupts {
            // Start and end of the routines that were read so far, without routines that are nested in another one of
            // them.
            let mut ended: Vec<(i64, i64)> = Vec::new();
            for row in 0..rows.end_ns.len() {
                let (start, end) = (rows.start_ns.get(row).expect("begun"), rows.end_ns[row]);
                let inner = ended.split_off(ended.partition_point(|(begun, _)| *begun < start));
                let (exclusive, fragments) = pieces(start, end, &inner);
                assert_eq!(
                    rows.exclusive_ns.get(row),
                    Some(exclusive),
                    "{start} to {end}"
                );
                ended.push((start, end));
                let address = rows.routine[row];
                let module = modules.entry(address).or_insert_with(|| {
                    let image = images.lookup(0, address, start).expect("a module");
                    let path = tables.images.nt_path.get(image).expect("a path");
                    path.rsplit('\\').next().expect("a file").to_owned()
                });
                all.push(Routine {
                    kind: match rows.kind.0[row] {
                        InterruptKind::Isr | InterruptKind::MessageIsr => "isr",
                        InterruptKind::Dpc => "dpc",
                        InterruptKind::ThreadedDpc => "threaded_dpc",
                        InterruptKind::TimerDpc => "timer_dpc",
                        other => panic!("{other:?} is never logged"),
                    },
                    module: module.clone(),
                    cpu: rows.cpu[row],
                    start,
                    end,
                    exclusive,
                    fragments,
                });
            }
        }
        all
    }

    /// Asserts that the trace and the truth agree about all routines, in each time range of the
    /// truth. Returns the routines in the trace.
    pub(crate) fn assert_routines_agree(&self) -> Vec<Routine> {
        let routines = self.routines();
        for window in self.truth["windows"].as_array().expect("windows") {
            let from = window["from_ns"].as_i64().expect("a time");
            let to = window["to_ns"].as_i64().expect("a time");
            let mut found: BTreeMap<(String, String, u64), Sums> = BTreeMap::new();
            for r in routines.iter().filter(|r| (from..to).contains(&r.end)) {
                let key = (r.kind.to_owned(), r.module.to_lowercase(), r.cpu.into());
                let sums = found.entry(key).or_default();
                sums.0 += 1;
                sums.1 += r.end - r.start;
                sums.2 += r.exclusive;
                sums.3 += r.fragments;
            }
            let mut told: BTreeMap<(String, String, u64), Sums> = BTreeMap::new();
            for r in window["routines"].as_array().expect("routines") {
                let Some(cpu) = r["cpu"].as_u64() else {
                    continue;
                };
                let text = |field: &str| r[field].as_str().expect("text").to_owned();
                let module = text("routine").split('!').next().map(str::to_lowercase);
                let sums = told
                    .entry((text("kind"), module.expect("a module"), cpu))
                    .or_default();
                let number = |field: &str| r[field].as_i64().expect("a number");
                sums.0 += number("count") as u64;
                sums.1 += number("inclusive_ns");
                sums.2 += number("exclusive_ns");
                sums.3 += number("fragments") as u64;
            }
            assert_eq!(found, told, "window {}", window["name"]);
        }
        routines
    }

    /// Returns a routine's sums over all processors in a time range of the truth.
    pub(crate) fn sums(&self, window: &str, routine: &str) -> Sums {
        let all = self.window(window)["routines"]
            .as_array()
            .expect("routines");
        let of = |r: &&Value| r["routine"] == routine && r["cpu"].is_null();
        let r = all
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("no {routine}"));
        let number = |field: &str| r[field].as_i64().expect("a number");
        (
            number("count") as u64,
            number("inclusive_ns"),
            number("exclusive_ns"),
            number("fragments") as u64,
        )
    }
}

/// Returns the time from `start` to `end` without the nested ranges `inner`, and the number of
/// pieces that remain.
fn pieces(start: i64, end: i64, inner: &[(i64, i64)]) -> (i64, u64) {
    let mut inner = inner.to_vec();
    inner.sort_unstable();
    inner.push((end, end));
    let (mut at, mut time, mut count) = (start, 0, 0);
    for (from, to) in inner {
        time += from - at;
        count += u64::from(from > at);
        at = to;
    }
    (time, count)
}

/// Returns true if `found` differs from `expected` by at most `share` of `expected`.
pub(crate) fn is_near(found: f64, expected: f64, share: f64) -> bool {
    (found - expected).abs() <= share * expected
}
