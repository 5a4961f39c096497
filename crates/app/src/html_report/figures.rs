//! The frames of charts over time: what each shows, or why there is nothing to show.

use maud::{Markup, html};

use super::charts::{Charts, Stack, Track};
use super::{missing, sentence};
use crate::output::{Printable, duration};
use crate::report::{cswitch, dpcisr, focuschange, profile};

/// A chart that the script draws.
struct Figure<'a> {
    /// What the script draws in it.
    chart: &'a str,
    title: &'a str,
    /// How to read it.
    reading: &'a str,
    /// What it shows, for who cannot see it.
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

/// All of them, which share their time.
pub(super) fn over_time(charts: &Charts) -> Markup {
    let range = charts.range();
    let span = duration(range.end.saturating_sub(range.start));
    if charts.is_empty() {
        return missing(
            "Nothing",
            "Nothing in this trace has a time that could be shown.",
        );
    }
    html! {
        p.note {
            "All charts show the same " (span) ". Drag across one to look closer; double-click to see "
            "all again. Times are since the trace's start."
            " " button #whole type="button" hidden { "Show all" }
        }
        (markers(charts))
        (tracks(charts))
        (processes(charts.processes.as_ref()))
        (priorities(charts))
        (cpus(charts))
        (interrupts(charts))
        (ranks(charts))
    }
}

fn markers(charts: &Charts) -> Markup {
    html! {
        @if !charts.markers.is_empty() {
            (Figure {
                chart: "markers",
                title: "When the findings were",
                reading: "By their numbers above. The time of problems and warnings is shaded in all other charts, and its beginning and end are marked.",
                shows: format!("{} findings have a time of their own, given with each", charts.markers.len()),
            }.markup())
        }
    }
}

fn tracks(charts: &Charts) -> Markup {
    const TITLE: &str = "Focus, input, frozen processes";
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
    if tracks.focus.is_empty() {
        missing_here.push(sentence(&focuschange::FOCUS.missing()));
    }
    if tracks.input.is_empty() {
        missing_here.push(
            "The trace holds no input: nobody typed or clicked, or it was not recorded; record it \
             with UIforETW's input tracing, or the provider Microsoft-Windows-Win32k."
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
                reading: "Who had the window in focus, when keys and buttons were pressed, which processes Windows had frozen.",
                shows: format!("Rows: {}", names.join(", ")),
            }.markup())
            @for why in &missing_here { p.missing { (Printable(why)) } }
        }
    }
}

fn processes(stack: Option<&Stack>) -> Markup {
    const TITLE: &str = "CPU time by process";
    let Some(stack) = stack else {
        let nothing = [cswitch::CPU_RUNS.missing(), profile::SAMPLES.missing()];
        return missing(TITLE, &nothing.map(|why| sentence(&why)).join(" "));
    };
    let reading = match stack.is_sampled {
        true => "Share of all CPUs, by samples: this trace holds no context switches.",
        false => {
            "Share of all CPUs, from context switches: with the DPCs and service routines that interrupted the process."
        }
    };
    Figure {
        chart: "processes",
        title: TITLE,
        reading,
        shows: format!("Of all CPUs' time: {}", stack.summary()),
    }
    .markup()
}

fn priorities(charts: &Charts) -> Markup {
    const TITLE: &str = "CPU time by priority";
    match &charts.priorities {
        None => missing(TITLE, &sentence(&cswitch::CPU_RUNS.missing())),
        Some(stack) => Figure {
            chart: "priorities",
            title: TITLE,
            reading: "Share of all CPUs by the priority that threads were switched in with. Threads of a rank above 0 go behind all others and are apart.",
            shows: format!("Of all CPUs' time: {}", stack.summary()),
        }
        .markup(),
    }
}

fn cpus(charts: &Charts) -> Markup {
    const TITLE: &str = "What each CPU did";
    let cpus = &charts.cpus;
    if cpus.busy.is_none() && cpus.dpc.is_none() && cpus.isr.is_none() {
        return missing(TITLE, &sentence(&cswitch::CPU_RUNS.missing()));
    }
    let left_out = match cpus.left_out {
        0 => String::new(),
        more => format!(
            " The first {} CPUs; {more} more are not shown.",
            cpus.numbers.len()
        ),
    };
    let unknown = match cpus.busy {
        None => " When threads ran is not known.",
        Some(_) if cpus.untold.iter().any(Option::is_some) => {
            " Blank is time of which nothing tells, or in which the machine slept."
        }
        Some(_) => "",
    };
    let reading = format!(
        "A row for each CPU, filled by what it did: service routines at the bottom, then DPCs, then threads, without the time for which these interrupted them.{unknown}{left_out}"
    );
    Figure {
        chart: "cpus",
        title: TITLE,
        reading: &reading,
        shows: format!(
            "A row for each of {} CPUs, coloured by what it did",
            cpus.numbers.len()
        ),
    }
    .markup()
}

fn interrupts(charts: &Charts) -> Markup {
    let Some(spread) = &charts.interrupts else {
        return missing(
            "DPCs and service routines",
            &sentence(&dpcisr::INTERRUPTS.missing()),
        );
    };
    let one = |chart, title, what: &str, counts: &[u64]| {
        let count: u64 = counts.iter().sum();
        if count == 0 {
            return missing(title, &format!("This trace holds no {what}."));
        }
        Figure {
            chart,
            title,
            reading: "Share of each CPU: the eight that had most, and the mean of the others.",
            shows: format!("Share of each CPU's time in {count} {what}"),
        }
        .markup()
    };
    html! {
        (one("dpc", "Time in DPCs", "DPCs", &spread.dpc))
        (one("isr", "Time in service routines", "service routines", &spread.isr))
        @if charts.dpc_durations.is_some() {
            (Figure {
                chart: "dpc_durations",
                title: "How long DPCs took",
                reading: "Each cell counts DPCs by when they ended and how long they took; the darker, the more. The line is at 100 µs, which no DPC should exceed.",
                shows: "DPCs by time and duration; the histogram below has the same counts".to_owned(),
            }.markup())
        }
    }
}

fn ranks(charts: &Charts) -> Markup {
    // Where all ranks are 0 there is nothing to see, and the theory about ranks says so.
    let shows = charts.ranks.iter();
    let shows: Vec<String> = shows
        .map(|line| format!("{} up to rank {}", line.name, line.highest))
        .collect();
    html! {
        @if !shows.is_empty() {
            (Figure {
                chart: "ranks",
                title: "Ranks",
                reading: "The highest rank of each process's threads when they left a CPU. Every thread of rank 0 goes before them, whatever the priorities.",
                shows: shows.join(", "),
            }.markup())
        }
    }
}
