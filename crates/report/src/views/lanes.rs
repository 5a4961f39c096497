//! Lanes of CPUs: the threads that ran on each CPU over time.

use std::collections::BTreeMap;

use explore::{CpuLane, Id, LanesAnswer};
use maud::{Markup, html};
use wording::grouped;

use super::axes::{Axes, Tick};
use super::{SERIES, colour, figure, moment};

/// Maximum number of CPUs whose lanes are drawn.
const MOST_CPUS: usize = 64;

/// Commands of SVG paths by their fill style.
type Paths = BTreeMap<String, String>;

pub(super) fn picture(lanes: &LanesAnswer) -> Markup {
    let shown = lanes.cpus.len().min(MOST_CPUS);
    let cpus = &lanes.cpus[..shown];
    // Height of a lane, including the gap below it.
    let pitch = match shown {
        0..=16 => 22.0,
        17..=32 => 14.0,
        _ => 9.0,
    };
    let axes = Axes {
        from: lanes.start_ns,
        to: lanes.end_ns,
        height: pitch * shown.max(1) as f64,
        ruled: false,
    };
    let coloured = coloured(cpus);
    let fill = |process: Id| match process {
        None => "fill:var(--unknown)".to_owned(),
        process => {
            let place = coloured.iter().position(|one| *one == process);
            format!("fill:{}", colour(place.unwrap_or(SERIES)))
        }
    };
    let mut paths = Paths::new();
    for (place, lane) in cpus.iter().enumerate() {
        let top = axes.y(1.0) + pitch * place as f64;
        draw(lane, (&axes, top, pitch), &fill, &mut paths);
    }
    let ticks: Vec<Tick> = cpus
        .iter()
        .enumerate()
        .filter(|(place, _)| pitch > 10.0 || place.is_multiple_of(2))
        .map(|(place, lane)| {
            let y = axes.y(1.0) + pitch * (place as f64 + 0.5);
            (y, format!("CPU {}", lane.cpu))
        })
        .collect();
    let inside = html! {
        @for (style, path) in &paths { path d=(path) style=(style) {} }
    };
    let mut caption = format!("{} to {}", moment(lanes.start_ns), moment(lanes.end_ns));
    if !lanes.exact {
        caption += "; each bucket shows the process that ran longest; height: CPU use";
    }
    let left_out = lanes.left_out + lanes.cpus.len() - shown;
    if left_out > 0 {
        caption += &format!("; {} more CPUs are not drawn", grouped(left_out as u64));
    }
    if cpus.iter().any(has_gaps) {
        caption += "; grey: not recorded";
    }
    let label = |process: &Id| {
        let label = process.and_then(|process| lanes.labels.process.get(&process));
        label.map_or("unknown", String::as_str).to_owned()
    };
    let mut colours: Vec<(String, String)> = coloured
        .iter()
        .enumerate()
        .map(|(place, process)| (label(process), colour(place)))
        .collect();
    colours.push(("others".to_owned(), colour(SERIES)));
    colours.push(("DPCs".to_owned(), "var(--dpc)".to_owned()));
    colours.push(("ISRs".to_owned(), "var(--isr)".to_owned()));
    figure(axes.over_time(&caption, &ticks, inside), &caption, &colours)
}

/// Adds the paths of a lane. Interrupts are in its upper fifth, threads below them. Unrecorded and doubtful times are
/// grey.
fn draw(
    lane: &CpuLane,
    (axes, top, pitch): (&Axes, f64, f64),
    fill: &dyn Fn(Id) -> String,
    paths: &mut Paths,
) {
    let strip = (pitch / 5.0).max(2.0);
    let high = pitch - strip - 1.5;
    let mut add = |style: String, (from, to): (i64, i64), (bottom, high): (f64, f64)| {
        let (left, right) = (axes.x(from), axes.x(to));
        let wide = (right - left).max(0.3);
        *paths.entry(style).or_default() += &Axes::rectangle(left, bottom - high, wide, high);
    };
    let runs = &lane.runs;
    for (place, process) in runs.process.iter().enumerate() {
        let share = f64::from(runs.busy[place]).clamp(0.05, 1.0);
        let time = (runs.start[place], runs.end[place]);
        add(fill(*process), time, (top + strip + high, high * share));
    }
    let routines = &lane.interrupts;
    for (place, kind) in routines.kind.iter().enumerate() {
        let style = if kind.contains("isr") || kind == "msi" {
            "fill:var(--isr)"
        } else {
            "fill:var(--dpc)"
        };
        let share = f64::from(routines.busy[place]).clamp(0.15, 1.0);
        let time = (routines.start[place], routines.end[place]);
        add(style.to_owned(), time, (top + strip, strip * share));
    }
    let grey = "fill:var(--ink-2);opacity:0.3";
    let before = lane.recorded_from_ns.map(|from| (axes.from, from));
    let after = lane.recorded_until_ns.map(|until| (until, axes.to));
    let doubtful = &lane.doubtful;
    let doubtful = doubtful
        .start
        .iter()
        .copied()
        .zip(doubtful.end.iter().copied());
    for (from, to) in before.into_iter().chain(after).chain(doubtful) {
        let (from, to) = (from.max(axes.from), to.min(axes.to));
        if from < to {
            add(
                grey.to_owned(),
                (from, to),
                (top + pitch - 1.0, pitch - 1.0),
            );
        }
    }
}

fn has_gaps(lane: &CpuLane) -> bool {
    let ends = lane.recorded_from_ns.or(lane.recorded_until_ns);
    ends.is_some() || !lane.doubtful.start.is_empty()
}

/// Returns the processes that have their own colour: the processes that ran longest.
fn coloured(cpus: &[CpuLane]) -> Vec<Id> {
    let mut ran: BTreeMap<i64, f64> = BTreeMap::new();
    for runs in cpus.iter().map(|lane| &lane.runs) {
        for (place, process) in runs.process.iter().enumerate() {
            let long = (runs.end[place] - runs.start[place]) as f64;
            if let Some(process) = process {
                *ran.entry(*process).or_default() += long * f64::from(runs.busy[place]);
            }
        }
    }
    let mut ran: Vec<(i64, f64)> = ran.into_iter().collect();
    ran.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ran.truncate(SERIES);
    ran.into_iter().map(|(process, _)| Some(process)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use explore::RunSpans;

    #[test]
    fn who_ran_longest_has_a_colour() {
        let runs = |process: i64, ends: i64| RunSpans {
            start: vec![0],
            end: vec![ends],
            process: vec![Some(process)],
            thread: vec![None],
            busy: vec![1.0],
        };
        let lane = |runs| CpuLane {
            runs,
            ..CpuLane::default()
        };
        let lanes: Vec<CpuLane> = (0..12)
            .map(|process| lane(runs(process, 10 + process)))
            .collect();
        let coloured = coloured(&lanes);
        assert_eq!(coloured.len(), SERIES);
        assert_eq!((coloured[0], coloured[8]), (Some(11), Some(3)));
    }
}
