//! Frames of the charts over time. If data for a chart is missing, the reason is shown instead.

use explain::Terms;
use maud::{Markup, html};
use session::missing_rows;
use tables::Table;
use wording::{Printable, counted, duration};

use super::charts::{Charts, Stack, Track};
use super::{missing, sentence};
use crate::Explained;

/// Frame of a chart, which the script of the page draws.
struct Figure<'a> {
    /// Name that the script uses to find the chart.
    chart: &'a str,
    title: &'a str,
    /// Explanation of how to read the chart.
    reading: &'a str,
    /// Text alternative for readers who cannot see the chart.
    shows: String,
}

impl Figure<'_> {
    fn markup(&self) -> Markup {
        html! {
            figure data-chart=(self.chart) {
                figcaption {
                    h3 { (self.title) }
                    p { (Printable(self.reading)) }
                }
                div.plot role="img" aria-label=(Printable(&self.shows)) {}
                ul.key {}
            }
        }
    }
}

/// Returns the frames of all charts. All charts show the same time range.
pub(super) fn over_time(explained: &Explained, charts: &Charts) -> Markup {
    let explanation = &explained.explanation;
    let (is_linux, terms) = (explanation.is_linux, explanation.terms());
    let range = charts.range();
    let span = duration(range.end.saturating_sub(range.start));
    if charts.is_empty() {
        return missing("No charts", "This trace has no data with a time.");
    }
    html! {
        p.note {
            "All charts show the same " (span) ". Drag across one to zoom in; double-click to see all "
            "again. Times count from the trace's start."
            " " button #whole type="button" hidden { "Show all" }
        }
        (markers(charts))
        (tracks(charts, is_linux))
        (processes(charts.processes.as_ref(), is_linux, terms))
        (priorities(charts, is_linux))
        (cpus(charts, is_linux, terms))
        (interrupts(charts, is_linux, terms))
        (ranks(charts))
    }
}

fn markers(charts: &Charts) -> Markup {
    html! {
        @if !charts.markers.is_empty() {
            (Figure {
                chart: "markers",
                title: "Times of findings",
                reading: "Numbers refer to the findings above. All other charts shade the time of problems and warnings and mark its start and end.",
                shows: format!(
                    "{} a time, printed with each",
                    counted(charts.markers.len() as u64, "finding has", "findings have")
                ),
            }.markup())
        }
    }
}

fn tracks(charts: &Charts, is_linux: bool) -> Markup {
    const TITLE: &str = "Focus, input, frozen processes";
    if is_linux && charts.tracks.freezes.is_empty() {
        return missing(
            "Frozen processes",
            &sentence(&missing_rows(Table::ProcessFreezes, true)),
        );
    }
    let tracks = &charts.tracks;
    let all = || {
        tracks
            .focus
            .iter()
            .chain(&tracks.input)
            .chain(&tracks.freezes)
    };
    let names: Vec<&str> = all().map(|track: &Track| track.name.as_str()).collect();
    let mut missing_here = Vec::new();
    if tracks.focus.is_empty() && !is_linux {
        missing_here.push(sentence(&missing_rows(Table::Focus, is_linux)));
    }
    if tracks.input.is_empty() && !is_linux {
        missing_here.push(
            "The trace has no input: the user did not type or click, or input was not recorded; \
             record it with UIforETW's input tracing, or the provider Microsoft-Windows-Win32k."
                .to_owned(),
        );
    }
    html! {
        @if names.is_empty() {
            (missing(TITLE, &missing_here.join(" ")))
        } @else {
            (Figure {
                chart: "tracks",
                title: TITLE,
                reading: if is_linux { "Processes that were frozen with their cgroup." } else { "The process in focus, keys and buttons pressed, and processes frozen by Windows." },
                shows: format!("Rows: {}", names.join(", ")),
            }.markup())
            @for why in &missing_here { p.missing { (Printable(why)) } }
        }
    }
}

fn processes(stack: Option<&Stack>, is_linux: bool, terms: &Terms) -> Markup {
    const TITLE: &str = "CPU time by process";
    let Some(stack) = stack else {
        let nothing = [Table::CpuRuns, Table::Samples];
        let nothing = nothing.map(|table| sentence(&missing_rows(table, is_linux)));
        return missing(TITLE, &nothing.join(" "));
    };
    let reading = if stack.is_sampled {
        "Share of all CPUs, from samples, since this trace has no context switches.".to_owned()
    } else {
        format!(
            "Share of all CPUs, from context switches. It includes the {} that interrupted the process.",
            terms.routines
        )
    };
    Figure {
        chart: "processes",
        title: TITLE,
        reading: &reading,
        shows: format!("Of all CPUs' time: {}", stack.summary()),
    }
    .markup()
}

fn priorities(charts: &Charts, is_linux: bool) -> Markup {
    const TITLE: &str = "CPU time by priority";
    match &charts.priorities {
        None => missing(TITLE, &sentence(&missing_rows(Table::CpuRuns, is_linux))),
        Some(stack) => Figure {
            chart: "priorities",
            title: TITLE,
            reading: if is_linux { "Share of all CPUs by the priority of threads when they were switched in: 0 is fair, 1 to 99 is real time, 100 has a deadline." } else { "Share of all CPUs by the priority of threads when they were switched in. Threads with a rank above 0 run after all others and are shown separately." },
            shows: format!("Of all CPUs' time: {}", stack.summary()),
        }
        .markup(),
    }
}

fn cpus(charts: &Charts, is_linux: bool, terms: &Terms) -> Markup {
    const TITLE: &str = "What each CPU did";
    let cpus = &charts.cpus;
    if cpus.busy.is_none() && cpus.dpc.is_none() && cpus.isr.is_none() {
        return missing(TITLE, &sentence(&missing_rows(Table::CpuRuns, is_linux)));
    }
    let left_out = match cpus.left_out {
        0 => String::new(),
        more => format!(
            " The first {} CPUs; {more} more are not shown.",
            cpus.numbers.len()
        ),
    };
    let unknown = match cpus.busy {
        None => " The trace does not record when threads ran.",
        Some(_) if cpus.untold.iter().any(Option::is_some) => {
            " Blank: not recorded, or the machine was suspended."
        }
        Some(_) => "",
    };
    let (isrs, dpcs) = (terms.isrs, terms.dpcs);
    let reading = format!(
        "One row for each CPU: {isrs} at the bottom, then {dpcs}, then threads. The time of threads excludes interruptions.{unknown}{left_out}"
    );
    Figure {
        chart: "cpus",
        title: TITLE,
        reading: &reading,
        shows: format!(
            "One row for each of {} CPUs: time in {isrs}, {dpcs} and threads",
            cpus.numbers.len()
        ),
    }
    .markup()
}

fn interrupts(charts: &Charts, is_linux: bool, terms: &Terms) -> Markup {
    let Some(spread) = &charts.interrupts else {
        let title = wording::capitalized(terms.routines);
        return missing(
            &title,
            &sentence(&missing_rows(Table::Interrupts, is_linux)),
        );
    };
    let one = |chart, what: &str, counts: &[u64]| {
        let title = format!("Time in {what}");
        let count: u64 = counts.iter().sum();
        if count == 0 {
            return missing(&title, &format!("This trace has no {what}."));
        }
        Figure {
            chart,
            title: &title,
            reading: "Share of each CPU's time: the eight CPUs with the largest shares, and the \
                      mean of the other CPUs.",
            shows: format!("Share of each CPU's time in {count} {what}"),
        }
        .markup()
    };
    html! {
        (one("dpc", terms.dpcs, &spread.dpc))
        (one("isr", terms.isrs, &spread.isr))
        @if charts.dpc_durations.is_some() {
            (Figure {
                chart: "dpc_durations",
                title: &format!("Durations of {}", terms.dpcs),
                reading: &format!(
                    "Each cell counts {dpcs} by end time and duration. Darker cells have more {dpcs}. The line marks \
                     100 µs{}",
                    if is_linux { "." } else { ", which no DPC should exceed." },
                    dpcs = terms.dpcs
                ),
                shows: format!(
                    "{} by time and duration; the histogram below has the same counts",
                    wording::capitalized(terms.dpcs)
                ),
            }.markup())
        }
    }
}

fn ranks(charts: &Charts) -> Markup {
    // If all ranks are 0, the chart would be empty, so it is left out. The verdict of the theory about ranks then says
    // that all ranks are 0.
    let shows = charts.ranks.iter();
    let shows: Vec<String> = shows
        .map(|line| format!("{} up to rank {}", line.name, line.highest))
        .collect();
    html! {
        @if !shows.is_empty() {
            (Figure {
                chart: "ranks",
                title: "Ranks",
                reading: "The highest rank of each process's threads when they left a CPU. Threads of rank 0 run before them, regardless of priority.",
                shows: shows.join(", "),
            }.markup())
        }
    }
}
