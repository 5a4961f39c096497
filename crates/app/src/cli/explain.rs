//! `laglab explain`.

use std::io::{self, Write};

use serde::Serialize;

use super::Failure;
use super::open::TraceFiles;
use crate::explain::{self, Explanation};
use crate::info::{Facts, Info};
use crate::metadata::{self, MetadataFiles};
use crate::output::{self, Columns, Side, duration, grouped, size};
use crate::pass;
use crate::stats::{Provider, Stats};
use crate::watch::Watch;

/// Providers listed.
const PROVIDERS: usize = 5;

/// Says who used the CPUs, who waited for them, what interrupted them and what the disks did.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab explain trace.etl\n  \
    laglab explain kernel.etl user.etl\n  \
    laglab explain --json trace.etl | jq '.explanation.waits.longest[0]'")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TraceFiles,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    info: Info,
    explanation: Explanation,
    /// Providers with most events, the kernel left out.
    providers: Vec<Provider>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let trace = args.trace.open()?;
    let mut decoder = MetadataFiles::default().decoder()?;
    let watch = Watch::new("reading", trace.size_bytes());
    let (facts, damage) = pass::collect::<Facts>(&trace, &watch)?;
    drop(watch);
    let survey = facts.survey();
    metadata::learn(&mut decoder, &trace, survey.metadata_buffers.clone());
    let names = metadata::identify(&decoder, &trace, survey.kinds.iter());
    let mut providers = Stats::new(&trace, survey, &names, damage.clone()).providers;
    // Event classes are the kernel's and its tools' own; providers have told something.
    providers.retain(|p| events::kernel::Class::of_guid(p.guid).is_none());
    providers.sort_by_key(|p| std::cmp::Reverse(p.count));
    providers.truncate(PROVIDERS);
    let report = Report {
        info: Info::new(&trace, &decoder, facts, damage),
        explanation: explain::explain(&trace)?,
        providers,
    };
    if json {
        output::json(&report)?;
    } else {
        let mut out = output::for_people();
        write(&mut out, &report)?;
        out.flush()?;
    }
    Ok(())
}

fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    write_trace(out, report)?;
    let e = &report.explanation;
    write_cpu(out, e)?;
    write_waits(out, e)?;
    write_ranks(out, e)?;
    write_interrupts(out, e)?;
    write_modules(out, e)?;
    write_disk(out, e)?;
    write_providers(out, report)?;
    write_capture(out, report)
}

/// What was recorded, in one paragraph.
fn write_trace(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let info = &report.info;
    let system = &info.system;
    let windows = match (system.release, system.build) {
        (Some(release), Some(build)) => format!("{release} (build {build})"),
        (None, Some(build)) => format!("Windows build {build}"),
        _ => "an unknown system".to_owned(),
    };
    let cpus = match info.cpus.stated {
        Some(1) => "1 CPU".to_owned(),
        Some(n) => format!("{n} CPUs"),
        None => "an unknown number of CPUs".to_owned(),
    };
    let extent = &info.trace;
    let recorded = extent
        .first_event_ns
        .zip(extent.last_event_ns)
        .map(|(first, last)| last.saturating_sub(first));
    let span = recorded.map_or("no time".to_owned(), duration);
    let start = extent
        .start
        .as_deref()
        .map_or(String::new(), |s| format!(" from {s}"));
    writeln!(
        out,
        "{} events over {span}{start}, on {windows} with {cpus}.",
        grouped(extent.events)
    )?;
    if !info.one_system {
        output::warning(out, super::SEVERAL_SYSTEMS)?;
    }
    Ok(())
}

fn write_cpu(out: &mut dyn Write, e: &Explanation) -> io::Result<()> {
    let Some(cpu) = &e.cpu else { return Ok(()) };
    output::heading(out, "CPU time by process")?;
    if let (Some(busy), Some(idle), Some(unknown)) = (cpu.busy_ns, cpu.idle_ns, cpu.unknown_ns) {
        let all = busy.saturating_add(idle).saturating_add(unknown);
        output::paragraph(
            out,
            &format!(
                "By context switches, CPUs were busy for {} ({}) and idle for {}.",
                duration(busy),
                percent(busy, all),
                duration(idle),
            ),
        )?;
        if unknown > 0 {
            let why = match cpu.missing_switches {
                0 => String::new(),
                n => format!(", or where switches are missing ({} times)", grouped(n)),
            };
            let text = format!(
                "Who ran for {} ({}) is unknown: before a CPU's first switch and after its last \
                 one{why}.",
                duration(unknown),
                percent(unknown, all)
            );
            match cpu.missing_switches {
                0 => output::quiet(out, &text)?,
                _ => output::warning(out, &text)?,
            }
        }
    }
    if let Some(interval) = cpu.sample_interval_ns {
        let (busy, idle) = (cpu.busy_samples, cpu.idle_samples);
        let share = match idle {
            // Some tools and systems leave them out; then samples give no share.
            0 => "none idle: samples of idle CPUs are not in the trace".to_owned(),
            _ => format!(
                "{} idle ({} busy)",
                grouped(idle),
                percent(busy as i64, (busy + idle) as i64)
            ),
        };
        let busy = grouped(busy);
        let interval = duration(interval);
        output::paragraph(
            out,
            &format!("By samples, one every {interval} on each CPU: {busy} busy, {share}."),
        )?;
    }
    let exact = cpu.busy_ns.is_some();
    let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Right, Side::Left]);
    columns.row(["exact", "by samples", "runs", "process"]);
    for p in &cpu.processes {
        columns.row([
            p.switched_ns.map_or("-".to_owned(), duration),
            p.sampled_ns
                .filter(|ns| *ns > 0)
                .map_or("-".to_owned(), duration),
            if exact {
                grouped(p.runs)
            } else {
                "-".to_owned()
            },
            p.process.label(),
        ]);
    }
    columns.write(out)
}

fn write_waits(out: &mut dyn Write, e: &Explanation) -> io::Result<()> {
    let Some(waits) = &e.waits else { return Ok(()) };
    output::heading(out, "Threads that waited for a CPU")?;
    let known = format!(
        "{} waits of ready threads are known, {} in all.",
        grouped(waits.known),
        duration(waits.total_ns)
    );
    output::paragraph(out, &known)?;
    if waits.unknown > 0 {
        let why = if waits.has_ready_events {
            "no ReadyThread event came before them"
        } else {
            "the trace has no ReadyThread events, so only waits of threads that lost their CPU are \
             known"
        };
        let unknown = grouped(waits.unknown);
        output::warning(
            out,
            &format!("The ready time of {unknown} switches is unknown: {why}."),
        )?;
    }
    if waits.in_gaps > 0 {
        let count = grouped(waits.in_gaps);
        let text = format!(
            "{count} waits are left out: switches are missing on the CPU while they lasted. Distrust \
             the others, too."
        );
        output::warning(out, &text)?;
    }
    if waits.longest.is_empty() {
        return Ok(());
    }
    let mut columns = Columns::new(&[
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
        Side::Left,
        Side::Left,
    ]);
    columns.row([
        "waited",
        "from",
        "CPU",
        "pri",
        "rank",
        "thread",
        "readied by",
        "meanwhile",
    ]);
    for w in &waits.longest {
        let meanwhile: Vec<String> = w
            .meanwhile
            .iter()
            .map(|m| format!("{} {}", m.process.label(), duration(m.ran_ns)))
            .collect();
        columns.row([
            duration(w.wait_ns),
            format!("{:.6} s", w.ready_ns as f64 / 1e9),
            w.cpu.to_string(),
            w.priority.to_string(),
            w.rank.map_or("-".to_owned(), |r| r.to_string()),
            format!("{} thread {}", w.process.label(), w.thread_id),
            match &w.readied_by {
                Some(by) if by.dpc => "a DPC".to_owned(),
                Some(by) => by.process.as_ref().map_or("?".to_owned(), |p| p.label()),
                None => "-".to_owned(),
            },
            meanwhile.join(", "),
        ]);
    }
    columns.write(out)?;
    match waits.longest.first() {
        Some(w) => write_longest(out, w),
        None => Ok(()),
    }
}

/// The longest wait as a sentence, and what of it is striking.
fn write_longest(out: &mut dyn Write, w: &explain::Wait) -> io::Result<()> {
    let process = w.process.label();
    let mut text = format!(
        "The longest: thread {} of {process}, priority {}, waited {} for CPU {}",
        w.thread_id,
        w.priority,
        duration(w.wait_ns),
        w.cpu
    );
    if let Some(most) = w.meanwhile.first() {
        let lower = most.lowest_priority < w.priority && most.process.process_id != Some(0);
        let with = if lower {
            " with threads of lower priority"
        } else {
            ""
        };
        text += &format!(", where {} ran meanwhile{with}", most.process.label());
    }
    match w.rank {
        Some(rank) if rank > 0 => {
            text += &format!(
                ". Its rank was {rank}: threads of a lower rank go before it, whatever the \
                 priorities."
            );
            output::warning(out, &text)
        }
        _ => output::paragraph(out, &(text + ".")),
    }
}

fn write_ranks(out: &mut dyn Write, e: &Explanation) -> io::Result<()> {
    let Some(ranks) = &e.ranks else { return Ok(()) };
    output::heading(out, "Ranks, quanta, priorities")?;
    let outs = ranks.switch_outs as i64;
    output::paragraph(
        out,
        &format!(
            "Of {} times that a thread left its CPU, {} were quantum ends and {} preemptions.",
            grouped(ranks.switch_outs),
            grouped(ranks.quantum_ends),
            grouped(ranks.preemptions)
        ),
    )?;
    if let Some(overdrawn) = ranks.overdrawn {
        let share = percent(overdrawn as i64, outs);
        let text = format!(
            "In {} of them ({share}) the quantum was overdrawn.",
            grouped(overdrawn)
        );
        output::paragraph(out, &text)?;
    }
    match ranks.highest_rank {
        None => output::quiet(
            out,
            "Ranks are not recorded: context switches carry them since Windows 10 1709.",
        ),
        Some(0) => output::paragraph(
            out,
            &format!(
                "All {} recorded ranks are 0: no thread was outranked.",
                grouped(ranks.with_rank)
            ),
        ),
        Some(highest) => {
            output::warning(
                out,
                &format!(
                    "{} of {} recorded ranks are not 0 (up to {highest}): those threads go behind \
                     every thread of rank 0, whatever their priorities.",
                    grouped(ranks.outranked),
                    grouped(ranks.with_rank)
                ),
            )?;
            let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Left]);
            columns.row(["times", "rank", "process"]);
            for p in &ranks.ranked_processes {
                let rank = match (p.lowest, p.highest) {
                    (low, high) if low == high => low.to_string(),
                    (low, high) => format!("{low}-{high}"),
                };
                columns.row([grouped(p.switch_outs), rank, p.process.label()]);
            }
            columns.write(out)
        }
    }
}

fn write_interrupts(out: &mut dyn Write, e: &Explanation) -> io::Result<()> {
    let Some(interrupts) = &e.interrupts else {
        return Ok(());
    };
    output::heading(out, "DPCs and interrupts")?;
    if let Some(sampled) = &interrupts.sampled {
        let share = |n: u64| percent(n as i64, sampled.samples as i64);
        output::paragraph(
            out,
            &format!(
                "By samples, {} of CPU time was in DPCs ({} samples) and {} in service routines \
                 ({} samples).",
                share(sampled.in_dpc),
                grouped(sampled.in_dpc),
                share(sampled.in_isr),
                grouped(sampled.in_isr)
            ),
        )?;
    }
    let Some(recorded) = &interrupts.recorded else {
        return Ok(());
    };
    let all = e.span_ns.saturating_mul(e.cpus as i64);
    for (name, kind) in [("DPCs", &recorded.dpc), ("service routines", &recorded.isr)] {
        if kind.count == 0 {
            continue;
        }
        output::paragraph(
            out,
            &format!(
                "{} {name} took {} ({} of CPU time), the longest {}; {} ran longer than {}.",
                grouped(kind.count),
                duration(kind.exclusive_ns),
                percent(kind.exclusive_ns, all),
                duration(kind.longest_ns),
                grouped(kind.over_limit),
                duration(kind.limit_ns)
            ),
        )?;
    }
    write_unknown_durations(
        out,
        recorded.dpc.without_duration + recorded.isr.without_duration,
    )?;
    let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Right, Side::Left]);
    columns.row(["time", "count", "longest", "module"]);
    for m in &recorded.modules {
        columns.row([
            duration(m.exclusive_ns),
            grouped(m.count),
            duration(m.longest_ns),
            m.module.clone(),
        ]);
    }
    columns.write(out)?;
    let busiest: Vec<String> = recorded
        .cpus
        .iter()
        .map(|c| format!("CPU {} {}", c.cpu, percent(c.exclusive_ns, e.span_ns)))
        .collect();
    output::paragraph(out, &format!("Most on: {}.", busiest.join(", ")))
}

fn write_modules(out: &mut dyn Write, e: &Explanation) -> io::Result<()> {
    let Some(modules) = &e.modules else {
        return Ok(());
    };
    output::heading(out, "Busiest modules, by samples")?;
    let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Left]);
    for m in &modules.modules {
        columns.row([
            percent(m.samples as i64, modules.samples as i64),
            grouped(m.samples),
            m.module.clone(),
        ]);
    }
    columns.write(out)?;
    if modules.unknown > 0 {
        let share = percent(modules.unknown as i64, modules.samples as i64);
        let text =
            format!("{share} at addresses of no known image (made at run time, or not listed)");
        output::quiet(out, &text)?;
    }
    Ok(())
}

fn write_disk(out: &mut dyn Write, e: &Explanation) -> io::Result<()> {
    if let Some(disk) = &e.disk {
        output::heading(out, "Disks")?;
        let kinds = [
            ("reads", &disk.reads),
            ("writes", &disk.writes),
            ("flushes", &disk.flushes),
        ];
        for (name, r) in kinds.iter().filter(|(_, r)| r.count > 0) {
            output::paragraph(
                out,
                &format!(
                    "{} {name}, {}, {} in sum, the longest {}.",
                    grouped(r.count),
                    size(r.bytes),
                    duration(r.total_ns),
                    duration(r.longest_ns)
                ),
            )?;
        }
        let unknown: u64 = kinds.iter().map(|(_, r)| r.without_duration).sum();
        write_unknown_durations(out, unknown)?;
        write_requests(out, &disk.processes)?;
    }
    if let Some(faults) = &e.hard_faults {
        output::heading(out, "Hard page faults")?;
        output::paragraph(
            out,
            &format!(
                "{} faults, {}; threads waited {} for them, {} at most.",
                grouped(faults.all.count),
                size(faults.all.bytes),
                duration(faults.all.total_ns),
                duration(faults.all.longest_ns)
            ),
        )?;
        write_unknown_durations(out, faults.all.without_duration)?;
        write_requests(out, &faults.processes)?;
    }
    Ok(())
}

fn write_unknown_durations(out: &mut dyn Write, count: u64) -> io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let count = grouped(count);
    output::warning(
        out,
        &format!("How long {count} of them took is unknown; their times are left out."),
    )
}

fn write_requests(out: &mut dyn Write, processes: &[explain::ProcessRequests]) -> io::Result<()> {
    let mut columns = Columns::new(&[
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Left,
    ]);
    columns.row(["time", "longest", "count", "size", "process"]);
    for p in processes {
        columns.row([
            duration(p.requests.total_ns),
            duration(p.requests.longest_ns),
            grouped(p.requests.count),
            size(p.requests.bytes),
            p.process.label(),
        ]);
    }
    columns.write(out)
}

fn write_providers(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    if report.providers.is_empty() {
        return Ok(());
    }
    output::heading(out, "Chattiest providers")?;
    let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Left]);
    columns.row(["events", "size", "provider"]);
    for p in &report.providers {
        let guid = p.guid.to_string();
        let name = p.name.as_deref().unwrap_or(&guid);
        columns.row([grouped(p.count), size(p.bytes), name.to_owned()]);
    }
    columns.write(out)
}

/// Whether the capture can be trusted, and what it cannot answer.
fn write_capture(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let damage = &report.info.damage;
    output::heading(out, "The capture")?;
    let missing_switches = report
        .explanation
        .cpu
        .as_ref()
        .map_or(0, |cpu| cpu.missing_switches);
    if damage.none && report.explanation.unreadable_events == 0 && missing_switches == 0 {
        output::paragraph(out, "Nothing is known to be lost or broken.")?;
    }
    for line in if damage.none {
        Vec::new()
    } else {
        damage.sentences()
    } {
        output::warning(out, &line)?;
    }
    if missing_switches > 0 {
        let text = format!(
            "Context switches are missing at {} places: the trace was trimmed, or they were lost.",
            grouped(missing_switches)
        );
        output::warning(out, &text)?;
    }
    if report.explanation.unreadable_events > 0 {
        let count = grouped(report.explanation.unreadable_events);
        output::warning(
            out,
            &format!("{count} events had payloads that could not be read"),
        )?;
    }
    if !report.info.missing.is_empty() {
        output::heading(out, "What this trace cannot answer")?;
        for missing in &report.info.missing {
            output::paragraph(out, &format!("{}: {}", missing.question, missing.reason))?;
            output::quiet(out, &format!("  {}", missing.advice))?;
        }
    }
    Ok(())
}

fn percent(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return "-".to_owned();
    }
    format!("{:.1} %", 100.0 * part as f64 / whole as f64)
}
