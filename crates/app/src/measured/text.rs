//! Measurements as text.

use std::io::{self, Write};

use measure::{End, FilesPhase, Machine, Virtualised};

use super::phases;
use super::table::{self, tables};
use super::{Outcome, Report};
use crate::output::{self, Columns, counted, duration, percent};

/// Writes the results of a measurement and the conditions under which they were measured.
pub(crate) fn text(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    let what = match report.probe {
        "sleep" => "How late sleeps end",
        "files" => "Time to read files",
        _ => "Round trips of packets",
    };
    if let Some(answer) = answer(report) {
        output::paragraph(out, &answer)?;
        writeln!(out)?;
    }
    output::first_heading(out, what)?;
    for table in tables(report) {
        if let Some(title) = &table.title {
            output::heading(out, title)?;
        }
        let (headings, sides): (Vec<_>, Vec<_>) = table.columns.iter().copied().unzip();
        let mut columns = Columns::new(&sides);
        columns.row(headings);
        table.rows.into_iter().for_each(|row| columns.row(row));
        columns.write(out)?;
    }
    for remark in remarks(report) {
        output::paragraph(out, &remark)?;
    }
    if let Some(causes) = report.why {
        super::causes::write(causes, out)?;
    }
    output::heading(out, "Measured on")?;
    for fact in facts(report) {
        output::paragraph(out, &fact)?;
    }
    for warning in hosts(report.machine) {
        output::warning(out, &warning)?;
    }
    if report.clock.went_back > 0 {
        output::warning(out, &clock_went_back(report))?;
    }
    for (refused, line) in grants(report) {
        if refused {
            output::warning(out, &line)?
        } else {
            output::paragraph(out, &line)?
        }
    }
    for line in unavailable(report) {
        output::quiet(out, &line)?;
    }
    Ok(())
}

/// Returns the result in one sentence: the median and the worst latency of the first method, and the method
/// with the lowest median. Returns `None` if no sample has a latency.
pub(super) fn answer(report: &Report<'_>) -> Option<String> {
    let is_of_files = report.probe == "files";
    let mut all: Vec<(i64, i64, &Outcome<'_>)> = Vec::new();
    for of in &report.results {
        let is_part = is_of_files && of.phase != Some(FilesPhase::Total.name());
        if let (Some(median), Some(worst), false) = (of.latency.p50_ns, of.latency.max_ns, is_part)
        {
            all.push((median, worst, of));
        }
    }
    let (median, worst, first) = *all.first()?;
    let has_settings = report.results.iter().any(|of| of.setting != first.setting);
    let name = |of: &Outcome<'_>| {
        if has_settings {
            format!("{} ({})", of.method, of.setting)
        } else {
            of.method.to_owned()
        }
    };
    let late = |ns: i64| match ns {
        ..0 => format!("{} early", duration(ns.saturating_neg())),
        _ => format!("{} late", duration(ns)),
    };
    let by = name(first);
    let mut text = match (report.probe, first.requested_ns) {
        ("sleep", Some(ns)) => format!(
            "A sleep of {} with {by} usually ends {}, at worst {}",
            duration(ns),
            late(median),
            late(worst)
        ),
        (probe, _) => format!(
            "{} with {by} usually takes {}, at worst {}",
            if probe == "files" {
                "Reading all files"
            } else {
                "A round trip"
            },
            duration(median),
            duration(worst)
        ),
    };
    let (least, worst, best) = *all.iter().min_by_key(|(median, ..)| *median)?;
    if least < median {
        text.push_str(&format!(
            "; {} is best with {}, at worst {}",
            name(best),
            duration(least),
            duration(worst)
        ));
    }
    text.push('.');
    Some(text)
}

/// Returns sentences that explain the numbers of the table, and missing numbers.
pub(super) fn remarks(report: &Report<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    let is_of_files = report.probe == "files";
    if is_of_files {
        remarks.push(phases::MEANING.to_owned());
    }
    let requested = report.results.iter().find_map(|of| of.requested_ns);
    if let Some(ns) = requested {
        remarks.push(format!(
            "Requested sleep: {}. The table shows how much later sleeps ended.",
            duration(ns)
        ));
    }
    // A probe of files shows the p99 of single reads only.
    let is_single =
        |of: &&Outcome<'_>| !is_of_files || of.phase == Some(FilesPhase::EachRead.name());
    if report.results.iter().any(|of| is_single(&of)) {
        remarks.push(
            "The bounds of p99 and p99.9 hold with 95 % confidence. They need at least 368 and 3,688 independent \
             samples; if there are fewer, the table has a dash. Neighbouring samples that depend on each other count \
             as fewer."
                .to_owned(),
        );
    }
    let missed: u64 = report.results.iter().map(|of| of.pacing.missed).sum();
    if missed > 0 {
        let worst = report.results.iter().map(|of| of.pacing.worst_ns).max();
        remarks.push(format!(
            "{} began at least one interval late, at most {}; {}.",
            counted(missed, "sample", "samples"),
            duration(worst.unwrap_or(0)),
            if missed == 1 {
                "it is included in the results"
            } else {
                "they are included in the results"
            }
        ));
    }
    if report
        .results
        .iter()
        .any(|of| table::begins_late(report.probe, of))
    {
        remarks.push(
            "Latency is measured from the actual start of a sample. It does not include the start \
             delay."
                .to_owned(),
        );
    }
    remarks.extend(not_compared(report));
    let with_ratio = (report.results.iter())
        .filter_map(|of| of.compared.as_ref())
        .find(|of| of.comparison.is_some());
    if let Some(compared) = with_ratio {
        remarks.push(format!(
            "Ratios compare the medians of neighbouring runs, with 95 % confidence. Unknown means \
             that the bounds include both no change and a change of more than {}.",
            percent(compared.margin)
        ));
    }
    remarks.extend(report.notes.iter().cloned());
    remarks.extend(end(report));
    remarks
}

/// Returns a sentence for each reason for which methods were not compared.
fn not_compared(report: &Report<'_>) -> Vec<String> {
    let is_of_files = report.probe == "files";
    // For files, the table shows the comparisons of some phases only.
    let is_shown = |of: &&Outcome<'_>| {
        let shown = phases::COMPARED.map(|phase| Some(phase.name()));
        !is_of_files || shown.contains(&of.phase)
    };
    let compared = || report.results.iter().filter(is_shown);
    let mut why_not: Vec<(&str, &str)> = compared()
        .filter_map(|of| Some((of.method, of.compared.as_ref()?.why_not.as_deref()?)))
        .collect();
    why_not.dedup();
    let mut reasons: Vec<&str> = why_not.iter().map(|(_, why)| *why).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let sentences = reasons.into_iter().map(|why| {
        let mut methods = why_not
            .iter()
            .filter(|of| of.1 == why)
            .map(|of| of.0)
            .collect::<Vec<_>>();
        methods.dedup();
        format!("Not compared ({}): {why}.", methods.join(", "))
    });
    sentences.collect()
}

/// Returns a sentence about the end of the measurement; `None` if it ended as planned.
fn end(report: &Report<'_>) -> Option<String> {
    match report.end {
        End::Stopped => {
            Some("The measurement was stopped early; these are the results so far.".to_owned())
        }
        End::Sure => Some(format!(
            "All comparisons were certain after {}, so the measurement ended. The bounds take this \
             early end into account.",
            counted(
                report
                    .results
                    .iter()
                    .map(|of| of.runs as u64)
                    .max()
                    .unwrap_or(0),
                "run",
                "runs"
            )
        )),
        End::Time if report.results.iter().any(|of| of.runs < 2) => {
            Some("There was time for only one run; allow more time with --for.".to_owned())
        }
        _ => None,
    }
}

/// Returns sentences about the machine, the clock, and the time that the probe itself takes.
pub(super) fn facts(report: &Report<'_>) -> Vec<String> {
    let machine = report.machine;
    let mut first = vec![];
    first.extend(machine.kernel.clone());
    first.extend(
        machine
            .cpus
            .map(|cpus| counted(cpus as u64, "usable CPU", "usable CPUs")),
    );
    first.extend(machine.cpu.clone());
    let mut second = vec![];
    second.extend(machine.load.map(|load| format!("load {load}")));
    second.extend(machine.hz.map(|hz| format!("{hz} ticks per second")));
    second.extend(machine.is_real_time.map(|is| {
        if is {
            "a real-time kernel".to_owned()
        } else {
            "not a real-time kernel".to_owned()
        }
    }));
    let source = machine.clock_source.as_ref();
    second.extend(source.map(|source| format!("kernel clock source {source}")));
    let clock = report.clock;
    let resolution = match clock.resolution_ns {
        Some(ns) => format!("smallest step {}", duration(ns)),
        None => "no step was seen".to_owned(),
    };
    let mut third = vec![format!(
        "clock {}: a reading takes {:.0} ns, {resolution}",
        clock.name, clock.reading_ns
    )];
    let cost = report.sample_cost_ns;
    third.extend(cost.map(|ns| format!("the probe itself takes {ns:.0} ns per sample")));
    // File reads have no fixed pace, so their start delays have no meaning.
    let paced = report.results.iter().filter(|_| report.probe != "files");
    let delays = paced.filter_map(|of| of.start_delay.p50_ns);
    third.extend(delays.max().map(|ns| {
        let late = duration(ns);
        format!("median delay of a sample's start: {late} or less for every method and setting")
    }));
    [first, second, third]
        .into_iter()
        .filter(|facts| !facts.is_empty())
        .map(|facts| facts.join(" · "))
        .collect()
}

/// Returns warnings about Wine and virtual machines, because they distort results.
pub(super) fn hosts(machine: &Machine) -> Vec<String> {
    let mut warnings = Vec::new();
    if machine.is_wine {
        warnings.push(
            "This is Wine, not Windows: scheduler and timers belong to another system, and granted \
             settings (priorities, MMCSS, timer resolutions) may have no effect."
                .to_owned(),
        );
    }
    if let Virtualised::By(name) = &machine.virtualised {
        warnings.push(format!(
            "This is a virtual machine ({name}): its host can take a CPU away at any moment. This causes \
             rare, very late samples, and no setting here prevents it."
        ));
    }
    warnings
}

pub(super) fn clock_went_back(report: &Report<'_>) -> String {
    let clock = report.clock;
    format!(
        "The clock went back {}, by up to {}: results are unreliable. Try another --clock.",
        counted(clock.went_back, "time", "times"),
        duration(clock.went_back_by_ns)
    )
}

/// Returns a line for each requested setting. The first value is true if the system refused the setting.
pub(super) fn grants(report: &Report<'_>) -> Vec<(bool, String)> {
    let mut lines = Vec::new();
    for setting in report.settings {
        let of = match &setting.of[..] {
            [] => setting.setting.clone(),
            of => format!("{}: {}", of.join(", "), setting.setting),
        };
        for grant in &setting.grants {
            let line = match report.settings.len() {
                1 => grant.to_string(),
                _ => format!("[{of}] {grant}"),
            };
            lines.push((!grant.is_granted(), line));
        }
    }
    lines
}

/// Returns a line for each method that is not available.
pub(super) fn unavailable(report: &Report<'_>) -> Vec<String> {
    let each = report.unavailable.iter();
    each.map(|one| format!("{}: not available: {}", one.method, one.why))
        .collect()
}
