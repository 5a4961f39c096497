//! Charts of the report: presets of the page whose tables have rows.

use std::sync::atomic::AtomicBool;

use explain::Terms;
use explore::{Condition, Drawn, Explorer, GraphKind, View};
use maud::{Markup, html};
use session::missing_rows;
use tables::Table;
use wording::{Printable, capitalized, counted, duration, grouped, listed};

use super::views::{Answer, Panel, ShownView, drawn, queries};
use super::{Error, missing, sentence};
use crate::ExplainedTrace;

/// Chart over time.
struct Chart {
    /// Names of presets. The first whose table has rows is drawn.
    presets: &'static [&'static str],
    /// True if the page says why the chart is missing.
    is_expected: bool,
}

const fn expected(presets: &'static [&'static str]) -> Chart {
    Chart {
        presets,
        is_expected: true,
    }
}

const fn optional(presets: &'static [&'static str]) -> Chart {
    Chart {
        presets,
        is_expected: false,
    }
}

const FOCUS: &str = "Window in focus";
const INPUT: &str = "Input";
const FROZEN: &str = "Frozen processes";
const BY_PROCESS: &str = "Utilization by process, thread";
const BY_CPU: &str = "Utilization by CPU";
const RANKS: &str = "Rank over time";
const DPCS: &str = "DPC duration by module, function";
const ISRS: &str = "ISR duration by module, function";
const READY: &str = "Ready time by process, thread";

const CHARTS: [Chart; 16] = [
    expected(&[FOCUS]),
    expected(&[INPUT]),
    optional(&[FROZEN]),
    expected(&[BY_PROCESS, "Samples by process, module, function"]),
    expected(&["Utilization by priority"]),
    expected(&[BY_CPU]),
    optional(&[READY]),
    expected(&["DPC and ISR time by CPU"]),
    optional(&[DPCS]),
    optional(&[ISRS]),
    optional(&["DPC durations over time"]),
    optional(&[RANKS]),
    optional(&["Disk use by process, file", "Hard faults by process, file"]),
    optional(&["Traffic by process", "Packets by DSCP"]),
    optional(&["Longest measured latency by method"]),
    optional(&["Measured latency over time"]),
];

/// Charts of a trace that has no other chart.
const OTHERWISE: Chart = optional(&["Generic events by provider", "Marks"]);

/// Charts of a trace.
pub(super) struct Charts {
    /// Charts over time, each with the name of its preset.
    over_time: Vec<(&'static str, ShownView)>,
    /// Distributions of durations, each with its caption.
    histograms: Vec<(String, ShownView)>,
    /// Reasons why charts are missing, each with their titles.
    missing: Vec<(String, Vec<&'static str>)>,
}

impl Charts {
    pub(super) const TABLES: [Table; 11] = [
        Table::CpuRuns,
        Table::Samples,
        Table::Interrupts,
        Table::Focus,
        Table::Input,
        Table::ProcessFreezes,
        Table::DiskIo,
        Table::HardFaults,
        Table::Network,
        Table::Packets,
        Table::LatencySamples,
    ];

    /// Requests the data of all charts.
    pub(super) fn ask(
        explorer: &Explorer,
        explained: &ExplainedTrace,
        cancelled: &AtomicBool,
    ) -> Result<Charts, Error> {
        let source = ChartSource {
            explorer,
            cancelled,
            is_linux: explained.explanation.is_linux,
            range: range(explained),
        };
        let mut charts = Charts {
            over_time: Vec::new(),
            histograms: Vec::new(),
            missing: Vec::new(),
        };
        for chart in &CHARTS {
            charts.add(&source, chart)?;
        }
        if charts.over_time.is_empty() {
            charts.add(&source, &OTHERWISE)?;
        }
        let terms = explained.explanation.terms();
        for (preset, measure, title) in [
            (READY, "ready_ns", "Ready threads' waits for a CPU"),
            (DPCS, "exclusive_ns", terms.dpcs),
            (ISRS, "exclusive_ns", terms.isrs),
        ] {
            let Some(mut view) = source.view(preset)? else {
                continue;
            };
            view.graph.kind = GraphKind::Histogram;
            view.graph.measure = Some(measure.to_owned());
            if let Some(shown) = source.shown(view, capitalized(title))? {
                let caption = caption(explained, &shown);
                charts.histograms.push((caption, shown));
            }
        }
        Ok(charts)
    }

    fn add(&mut self, asked: &ChartSource<'_>, chart: &Chart) -> Result<(), Error> {
        let mut reasons = Vec::new();
        for name in chart.presets {
            let Some(view) = asked.view(name)? else {
                reasons.extend(asked.reason(name)?);
                continue;
            };
            if let Some(shown) = asked.shown(view, (*name).to_owned())? {
                self.over_time.push((name, shown));
            }
            return Ok(());
        }
        let is_expected = match chart.presets {
            // No program of Windows needs to be frozen, and recordings of Linux have neither focus nor input.
            [FROZEN] => asked.is_linux,
            [FOCUS | INPUT] => !asked.is_linux,
            _ => chart.is_expected,
        };
        if is_expected {
            let reason = reasons.join(" ");
            match self.missing.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, titles)) => titles.push(chart.presets[0]),
                None => self.missing.push((reason, vec![chart.presets[0]])),
            }
        }
        Ok(())
    }

    /// Returns all charts, in the order of their places on the page.
    pub(super) fn views(&self) -> impl Iterator<Item = &ShownView> {
        let over_time = self.over_time.iter().map(|(_, shown)| shown);
        over_time.chain(self.histograms.iter().map(|(_, shown)| shown))
    }

    /// Returns the time range of the charts.
    pub(super) fn range(&self) -> Option<[i64; 2]> {
        self.views()
            .find_map(|shown| shown.answer.as_ref()?.range())
    }

    /// Returns the charts over time. `place` counts the pictures.
    pub(super) fn over_time(&self, explained: &ExplainedTrace, place: &mut usize) -> Markup {
        let span = self
            .range()
            .map(|[from, to]| duration(to.saturating_sub(from)));
        html! {
            @if let Some(span) = span {
                p.note {
                    "All graphs show the same " (span) ". Drag across one to zoom in; double-click to see all "
                    "again. Times count from the trace's start. Graphs shade the times of problems and warnings, "
                    "with the numbers of the findings above."
                }
                div #times {}
            }
            @for (preset, shown) in &self.over_time {
                figure.picture {
                    figcaption {
                        h3 { (Printable(&shown.title)) }
                        p { (Printable(&reading(preset, shown, explained))) }
                    }
                    (drawn(place))
                    (queries(shown))
                }
            }
            @for (reason, titles) in &self.missing {
                (missing(&listed(titles), reason))
            }
        }
    }

    /// Returns the distributions of durations. `place` counts the pictures.
    pub(super) fn histograms(&self, explained: &ExplainedTrace, place: &mut usize) -> Markup {
        let terms = explained.explanation.terms();
        html! {
            p.note {
                "Number of events by duration, on a logarithmic axis. Durations of " (terms.routines)
                " exclude interruptions. Routines that run in threads are not counted."
            }
            @if self.histograms.is_empty() {
                (missing("No durations", &format!("The trace has neither waits for a CPU nor {}.", terms.routines)))
            }
            div.histograms {
                @for (caption, shown) in &self.histograms {
                    figure.picture {
                        figcaption { h3 { (Printable(&shown.title)) } p { (caption) } }
                        (drawn(place))
                        (queries(shown))
                    }
                }
            }
        }
    }
}

/// Source of the charts' data.
struct ChartSource<'a> {
    explorer: &'a Explorer,
    cancelled: &'a AtomicBool,
    is_linux: bool,
    /// Time range of the charts; `None` for the whole trace.
    range: Option<[i64; 2]>,
}

impl ChartSource<'_> {
    /// Returns the view of a preset. Returns `None` if its table has no rows.
    fn view(&self, name: &str) -> Result<Option<View>, Error> {
        let preset = self.explorer.recorded(name, self.cancelled)?;
        let Some(mut view) = preset.map(|preset| preset.view) else {
            return Ok(None);
        };
        view.range = self.range;
        if name == BY_CPU {
            view.graph.drawn = Some(Drawn::Lanes);
        }
        // Durations of routines that run in threads include the times in which the threads were preempted.
        let kinds = view
            .filter
            .iter_mut()
            .filter(|condition| condition.column == "kind");
        for kinds in kinds.filter_map(|condition: &mut Condition| condition.is.as_mut()) {
            kinds.retain(|kind| explain::limit_ns(kind).is_some());
        }
        Ok(Some(view))
    }

    /// Requests the data of a chart. Returns `None` if there is nothing to draw.
    fn shown(&self, view: View, title: String) -> Result<Option<ShownView>, Error> {
        let is_rank = title == RANKS;
        let panel = Panel::graph(view, title);
        let mut shown = ShownView::ask(self.explorer, panel, self.cancelled)?;
        if is_rank && let Some(Answer::Timeline(answer)) = &mut shown.answer {
            // Threads of most processes always have rank 0.
            answer
                .series
                .retain(|series| series.total > Some(explore::Number::Integer(0)));
            answer.rest = None;
        }
        let is_empty = shown.answer.as_ref().is_none_or(Answer::is_empty);
        Ok((!is_empty).then_some(shown))
    }

    /// Returns the reason why a preset's table has no rows.
    fn reason(&self, name: &str) -> Result<Option<String>, Error> {
        if name == INPUT {
            return Ok(Some(
                "The trace has no input: the user did not type or click, or input was not recorded; record it with \
                 UIforETW's input tracing, or the provider Microsoft-Windows-Win32k."
                    .to_owned(),
            ));
        }
        let presets = self.explorer.presets();
        let preset = presets.iter().find(|preset| preset.name == name);
        let table = preset.and_then(|preset| preset.view.table.parse::<Table>().ok());
        Ok(table.map(|table| sentence(&missing_rows(table, self.is_linux))))
    }
}

/// Returns the time range of the charts: from the first to the last run. If there are no runs, it is the range of all
/// events.
fn range(explained: &ExplainedTrace) -> Option<[i64; 2]> {
    let ran = &explained.explanation.span;
    if !ran.is_empty() {
        return Some([ran.start, ran.end]);
    }
    let extent = &explained.info.trace;
    let (first, last) = extent.first_event_ns.zip(extent.last_event_ns)?;
    (first <= last).then_some([first, last.saturating_add(1)])
}

/// Returns the explanation of how to read a chart.
fn reading(preset: &str, shown: &ShownView, explained: &ExplainedTrace) -> String {
    let explanation = &explained.explanation;
    let (is_linux, terms) = (explanation.is_linux, explanation.terms());
    let mut reading = of_preset(preset, is_linux, terms);
    let doubtful = &explanation.survey.doubtful;
    let is_without = |condition: &Condition| condition.column == "doubtful";
    if doubtful.runs > 0 && shown.panel.view.filter.iter().any(is_without) {
        reading += &format!(
            " Without {} of {}: context switches within them are missing.",
            counted(doubtful.runs, "doubtful run", "doubtful runs"),
            duration(doubtful.cpu_ns)
        );
    }
    reading
}

fn of_preset(preset: &str, is_linux: bool, terms: &Terms) -> String {
    match preset {
        FOCUS => "The process in focus.".to_owned(),
        INPUT => "Keys and buttons pressed, and moves of the mouse.".to_owned(),
        FROZEN if is_linux => "Processes that were frozen with their cgroup.".to_owned(),
        FROZEN => "Processes frozen by Windows.".to_owned(),
        BY_PROCESS => format!(
            "Share of all CPUs, from context switches. It includes the {} that interrupted the process.",
            terms.routines
        ),
        "Samples by process, module, function" => {
            "Share of all CPUs, from samples, since this trace has no context switches.".to_owned()
        }
        "Utilization by priority" if is_linux => {
            "Share of all CPUs by the priority of threads when they were switched in: 0 is fair, 1 to 99 is real \
             time, 100 has a deadline."
                .to_owned()
        }
        "Utilization by priority" => {
            "Share of all CPUs by the priority of threads when they were switched in.".to_owned()
        }
        BY_CPU => format!(
            "One row for each CPU, filled by the share of the time in which threads ran, including the {} that \
             interrupted them.",
            terms.routines
        ),
        READY => "Number of threads that could run, but had no CPU.".to_owned(),
        "DPC and ISR time by CPU" => format!(
            "Share of each CPU's time in {}: the CPUs with the largest shares.",
            terms.routines
        ),
        DPCS => format!("Share of all CPUs in {}, by module.", terms.dpcs),
        ISRS => format!("Share of all CPUs in {}, by module.", terms.isrs),
        "DPC durations over time" => format!(
            "Each cell counts {} by time and duration. Darker cells have more.",
            terms.dpcs
        ),
        RANKS => "The highest rank of each process's threads when they left a CPU. Threads of rank 0 run before \
                  them, regardless of priority. Processes with rank 0 only are left out."
            .to_owned(),
        _ => String::new(),
    }
}

/// Returns the caption of a histogram: the number of durations, and the number of those over the limit.
fn caption(explained: &ExplainedTrace, shown: &ShownView) -> String {
    let explanation = &explained.explanation;
    let view = &shown.panel.view;
    let kinds = view
        .filter
        .iter()
        .filter(|condition| condition.column == "kind");
    let kinds: Vec<&String> = kinds
        .filter_map(|condition| condition.is.as_ref())
        .flatten()
        .collect();
    let Some(limit) = kinds.first().and_then(|kind| explain::limit_ns(kind)) else {
        return format!("{} in all.", grouped(explanation.survey.ready_waits.known));
    };
    let routines = explanation.survey.interrupts.routines.iter();
    let routines = routines.filter(|routine| kinds.iter().any(|kind| **kind == routine.kind));
    let (count, over) = routines.fold((0, 0), |(count, over), routine| {
        (count + routine.times, over + routine.over_limit)
    });
    let count = grouped(count.unsigned_abs());
    if explanation.is_linux {
        return format!("{count} in all.");
    }
    let over = grouped(over.unsigned_abs());
    format!(
        "{count} in all, {over} of them longer than {} µs.",
        limit / 1_000
    )
}
