//! Study of all pairs: errors of predictions, and the share of error bars that hold the truth. Its result is committed
//! in `bench/runs/`. It takes minutes, so it runs on request:
//! `cargo test -p replay --test tests -- --ignored --nocapture study`. If the variable `LAGLAB_STUDY` is set, the numbers are
//! written to this file as CSV.

#![expect(clippy::print_stdout, reason = "the study prints its results")]

use crate::pairs;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use pairs::{Judged, Pair, distance, predicted, workload};
use replay::Metric;
use simulated::Simulated;

/// Number of seeds. The factor of the error bars is chosen on the odd ones.
const SEEDS: u64 = 6;
/// Pairs of replays for the part of the bar because of chance.
const REPLAYS: usize = 10;
/// Effect above which a number counts as changed, as a logarithm.
const CHANGED: f64 = 0.05;

/// Runs `work` for all items on two threads. Returns the results in the order of the items.
fn on_two_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            match items.get(n) {
                Some(item) => done.push((n, work(item))),
                None => return done,
            }
        }
    };
    let mut all = std::thread::scope(|scope| {
        let threads = [scope.spawn(take), scope.spawn(take)];
        let done = threads.map(|thread| thread.join().expect("a finished thread"));
        done.into_iter().flatten().collect::<Vec<_>>()
    });
    all.sort_by_key(|(n, _)| *n);
    all.into_iter().map(|(_, result)| result).collect()
}

fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => values[((share * count as f64).ceil() as usize).clamp(1, count) - 1],
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn share(of: usize, all: usize) -> String {
    match all {
        0 => "-".to_owned(),
        _ => percent(of as f64 / all as f64),
    }
}

#[test]
#[ignore = "takes minutes"]
fn self_replays() {
    let names: Vec<&str> = sim::shipped::names().collect();
    let rows = on_two_threads(&names, |name| {
        let settings: &[&str] = match *name {
            "load" => &["duration=0.25s"],
            name if name.starts_with("dpc-flood") => &["duration=2s"],
            _ => &[],
        };
        let recorded = match workload(&Simulated::new(name, settings)) {
            Ok(recorded) => recorded,
            Err(refusal) => return (format!("| {name} | all refused: {refusal} | | | |\n"), None),
        };
        let prediction = predicted(&recorded, &[], 0);
        let rows = prediction.rows.iter().filter(|row| row.thread_id.is_none());
        let (kept, refused): (Vec<_>, Vec<_>) = rows.partition(|row| row.refused.is_none());
        for row in &refused {
            println!(
                "{name}: {}: {}",
                row.name(),
                row.refused.as_deref().unwrap_or_default()
            );
        }
        let worst = |metrics: &[Metric]| {
            let of = kept.iter().flat_map(|row| {
                let of = metrics.iter().filter_map(|metric| row.get(*metric));
                of.map(|of| distance(of.replayed_ns, of.recorded_ns, row.floor_ns(of.metric)))
            });
            of.fold(0.0, f64::max).exp_m1()
        };
        let cpu = worst(&[Metric::Cpu]);
        let waits = worst(&[Metric::ReadyP99, Metric::ResponseP99]);
        let line = format!(
            "| {name} | {} of {} | {:.2} % | {:.2} % | {:.2} % |\n",
            refused.len(),
            refused.len() + kept.len(),
            100.0 * cpu,
            100.0 * worst(&[Metric::ReadyP99]),
            100.0 * worst(&[Metric::ResponseP99]),
        );
        (line, Some((cpu, waits)))
    });
    let mut text =
        "\n| scenario | refused | CPU | ready p99 | response p99 |\n|---|---|---:|---:|---:|\n"
            .to_owned();
    rows.iter().for_each(|(line, _)| text += line);
    let errors = || rows.iter().filter_map(|(_, errors)| *errors);
    let (cpu, waits) = (|| errors().map(|of| of.0), || errors().map(|of| of.1));
    writeln!(
        text,
        "\nWorst process of a scenario: CPU median {:.2} %, maximum {:.2} %; p99 median {:.2} %, maximum {:.2} %.",
        100.0 * quantile(cpu(), 0.5),
        100.0 * quantile(cpu(), 1.0),
        100.0 * quantile(waits(), 0.5),
        100.0 * quantile(waits(), 1.0)
    )
    .expect("text");
    println!("{text}");
}

/// Returns a row of the table: errors of the changed numbers, and the share of all bars that hold the truth.
fn line(name: &str, of: &[&(&Pair, Judged)]) -> String {
    let all = || of.iter().map(|(_, of)| of);
    let changed = || all().filter(|of| of.effect() > CHANGED);
    let is_right =
        |of: &&Judged| (of.predicted_ns < of.recorded_ns) == (of.true_ns < of.recorded_ns);
    let error = |share| percent(quantile(changed().map(Judged::error), share).exp_m1());
    let sum = |value: fn(&Judged) -> f64| changed().map(value).sum::<f64>();
    let count = changed().count();
    let signs = changed().filter(is_right);
    let stated = || all().filter(|of| of.is_stated);
    let inside = all().filter(|of| of.is_inside()).count();
    format!(
        "| {name} | {} | {count} | {} | {} | {:.2} | {} | {} | {} | {} | {} |\n",
        of.len(),
        error(0.5),
        error(0.9),
        1.0 - sum(Judged::error) / sum(Judged::effect),
        share(signs.count(), count),
        format_args!(
            "{} of {}",
            stated().filter(is_right).count(),
            stated().count()
        ),
        share(inside, of.len()),
        share(changed().filter(|of| of.is_inside()).count(), count),
        share(
            all().filter(|of| of.moves() && of.is_inside()).count(),
            all().filter(|of| of.moves()).count()
        ),
    )
}

/// Returns all numbers with the parts of their error bars, as CSV. A part is a share of the predicted number. It is empty
/// if it is unknown.
fn csv(judged: &[(&Pair, Judged)]) -> String {
    let mut csv = "scenario,change,seed,process,metric,is_bound,recorded_ns,replayed_ns,changed_ns,predicted_ns,\
                   true_ns,floor_ns,chance,model,structure,effect,low_ns,high_ns\n"
        .to_owned();
    for (pair, of) in judged {
        let bar = &of.bar;
        let known = |part: Option<f64>| part.map_or(String::new(), |part| part.to_string());
        let texts = [
            pair.scenario.to_owned(),
            pair.change.clone(),
            pair.seed.to_string(),
            of.process.clone(),
            format!("{:?}", of.metric),
            of.is_bound.to_string(),
        ];
        let numbers = [
            of.recorded_ns,
            of.replayed_ns,
            of.changed_ns,
            of.predicted_ns,
            of.true_ns,
            of.floor_ns,
        ];
        let parts = [
            bar.chance,
            Some(bar.model),
            bar.structure,
            Some(bar.effect),
            Some(bar.low_ns),
            Some(bar.high_ns),
        ];
        let numbers = numbers.map(Some).into_iter().chain(parts).map(known);
        let cells: Vec<String> = texts.into_iter().chain(numbers).collect();
        csv += &cells.join(",");
        csv.push('\n');
    }
    csv
}

#[test]
#[ignore = "takes minutes"]
fn all_pairs() {
    let seeds = std::env::var("SEEDS").map_or(SEEDS, |of| of.parse().expect("a number"));
    let pairs: Vec<Pair> = (1..=seeds).flat_map(pairs::all).collect();
    let results = on_two_threads(&pairs, |pair| pair.judge(REPLAYS));
    let refused: usize = results.iter().map(|(_, refused)| refused).sum();
    let judged: Vec<(&Pair, Judged)> = (pairs.iter().zip(results))
        .flat_map(|(pair, (judged, _))| judged.into_iter().map(move |of| (pair, of)))
        .collect();
    if let Some(path) = std::env::var_os("LAGLAB_STUDY") {
        fs::write(path, csv(&judged)).expect("a written file");
    }

    let mut groups: BTreeMap<String, Vec<&(&Pair, Judged)>> = BTreeMap::new();
    for one in &judged {
        let (pair, of) = one;
        let kind = pair.change.split([':', '=']).next().unwrap_or_default();
        let half = if pair.seed.is_multiple_of(2) {
            "even seeds (not calibrated)"
        } else {
            "odd seeds"
        };
        for name in [
            format!("1 all {half}"),
            format!("2 {:?}", of.metric),
            format!("3 {kind} ({})", pair.scenario),
        ] {
            groups.entry(name).or_default().push(one);
        }
    }
    let mut text = format!(
        "\n{} pairs, {} numbers of {} metrics; {refused} processes refused.\n\n| | numbers | changed | median error | \
         90th percentile | skill | sign right | sign of stated effects | bar holds | of changed | of moved |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        pairs.len(),
        judged.len(),
        Metric::ALL.len()
    );
    for (name, of) in &groups {
        text += &line(&name[2..], of);
    }
    println!("{text}");
}
