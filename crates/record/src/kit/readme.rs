//! README of a kit: use, content, cost, and the theories that get a verdict.

use std::fmt::Write as _;

use super::{Detail, Kit, Variant};
use crate::advice::listed;
use crate::needs::THEORIES;
use crate::{Cost, Kind, Provider};

pub(super) fn write(kit: &Kit) -> String {
    let mut text = String::new();
    let out = &mut text;
    let _ = write_sections(out, kit);
    text
}

fn write_sections(out: &mut String, kit: &Kit) -> std::fmt::Result {
    writeln!(out, "# {}\n", kit.investigation.question())?;
    write_tasks(out)?;
    write_warnings(out, kit)?;
    write_content(out, kit)?;
    write_cost(out, kit)?;
    write_theories(out, kit)?;
    writeln!(out, "\nNext: `laglab explain {}-1.etl`.", kit.name())
}

/// Writes the table of tasks with the commands for them.
fn write_tasks(out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "A kit of laglab that records the events for this question. Run it in this folder, from an \
         elevated prompt:\n"
    )?;
    writeln!(out, "| task | batch file | PowerShell |\n|---|---|---|")?;
    for (what, batch, powershell) in [
        ("record for 20 s", "record", r".\record.ps1"),
        (
            "record for a minute, with a note",
            "record 60 \"after resume\"",
            r#".\record.ps1 -Seconds 60 -Note "after resume""#,
        ),
        (
            "start; stop",
            "record start; record stop",
            r".\record.ps1 Start; … Stop",
        ),
        (
            "keep the latest events in memory; save them after a lag",
            "record circular; record save",
            r".\record.ps1 Circular; … Save",
        ),
        (
            "mark a moment",
            "record mark \"now\"",
            r#".\record.ps1 Mark -Note "now""#,
        ),
        (
            "record the next boot; save it afterwards",
            "record boot; record boot-stop",
            r".\record.ps1 Boot; … BootStop",
        ),
        (
            "end without saving",
            "record cancel; record boot-cancel",
            r".\record.ps1 Cancel; … BootCancel",
        ),
    ] {
        writeln!(out, "| {what} | `{batch}` | `{powershell}` |")?;
    }
    Ok(())
}

/// Writes which events the kit records, and what the user must know about them.
fn write_content(out: &mut String, kit: &Kit) -> std::fmt::Result {
    let capture = kit.capture();
    writeln!(out, "## What it records\n")?;
    writeln!(
        out,
        "Keywords of the kernel: {}.",
        listed(&capture.keywords().map(|k| k.wpr()).collect::<Vec<_>>())
    )?;
    let stacks: Vec<&str> = capture.stacks().map(|stack| stack.wpr()).collect();
    if !stacks.is_empty() {
        writeln!(out, "Stacks of: {}.", listed(&stacks))?;
    }
    let providers: Vec<String> = (capture.providers().iter())
        .map(|enabled| match enabled.keywords {
            0 => enabled.provider.name().to_owned(),
            keywords => format!("{} (keywords {keywords:#x})", enabled.provider.name()),
        })
        .collect();
    if !providers.is_empty() {
        writeln!(out, "Providers: {}.", listed(&providers))?;
    }
    write_other_detail(out, kit)?;
    writeln!(
        out,
        "A trace contains names of programs and files and, with packets, the data sent. `laglab trim \
         --redact` removes them before you share it."
    )?;
    write_notes(out, kit)
}

/// Writes notes about the kit's variant, its NUMA node, and events that need another recorder.
fn write_notes(out: &mut String, kit: &Kit) -> std::fmt::Result {
    if kit.variant == Variant::LargeServer && kit.detail == Detail::Verbose {
        writeln!(
            out,
            "\nThis is the variant for large servers. It leaves out the stacks of context switches and \
             of code that made threads ready, and sets the number of buffers instead of a percentage \
             of the memory."
        )?;
    }
    if let Some(node) = kit.node {
        writeln!(
            out,
            "\nThe recorder runs with high priority on NUMA node {node}. If the machine has no such \
             node, `start` fails; remove `/node {node}` from the scripts."
        )?;
    }
    if kit.has_packets() {
        writeln!(
            out,
            "\nPackets need a filter driver, which `netsh trace` binds to the adapters. The scripts \
             start it too and save its trace (at most 1 GiB) next to the other one. Give both to \
             `laglab explain`."
        )?;
    }
    if kit.has_provider(Provider::Input) {
        writeln!(
            out,
            "\nTimes of keys and of changes of the foreground window are recorded only while \
             `laglab record input` runs too. Key codes are recorded only with its option `--keys`."
        )?;
    }
    Ok(())
}

/// Writes the theories that the kit's question is about, others that get a verdict, and those that get none.
fn write_theories(out: &mut String, kit: &Kit) -> std::fmt::Result {
    writeln!(out, "\n## Theories that `laglab explain` can judge\n")?;
    let judged = kit.judged();
    for needs in &THEORIES {
        if kit.investigation.theories().contains(&needs.theory) {
            writeln!(out, "- `{}`{}", needs.theory, if_any(needs.only_if_any))?;
        }
    }
    let also: Vec<String> = judged
        .iter()
        .filter(|needs| !kit.investigation.theories().contains(&needs.theory))
        .map(|needs| format!("`{}`", needs.theory))
        .collect();
    if !also.is_empty() {
        writeln!(out, "\nAlso: {}.", listed(&also))?;
    }
    let open: Vec<String> = (THEORIES.iter())
        .filter(|needs| !judged.contains(needs))
        .map(|needs| format!("`{}`", needs.theory))
        .collect();
    if !open.is_empty() {
        writeln!(out, "Not recorded: {}.", listed(&open))?;
    }
    Ok(())
}

/// Writes warnings about the effects on machines that are in use.
fn write_warnings(out: &mut String, kit: &Kit) -> std::fmt::Result {
    let cost = kit.cost();
    writeln!(
        out,
        "\n`record-xperf` does the same with xperf, except for boots. If scripts are disabled: \
         `powershell -ExecutionPolicy Bypass -File record.ps1`.\n"
    )?;
    writeln!(out, "Before you run it on a production machine:\n")?;
    writeln!(
        out,
        "- Windows has one kernel logger. If another program uses it, the start fails; `logman query \
         -ets` lists the running sessions. A new recording ends an earlier one only if these scripts \
         started it and it was not stopped."
    )?;
    writeln!(
        out,
        "- A recording to a file grows until it is stopped or the disk is full, by about {} per minute \
         on a busy machine. Temporary files go to `temp` in this folder, and the saved trace needs as much space \
         again. Put the folder on a fast disk that has enough space and is not under investigation.",
        megabytes(cost.busy_bytes_per_second * 60)
    )?;
    writeln!(
        out,
        "- After Ctrl-C the batch files leave the recorder running; end it with `record stop` or \
         `record cancel`. `record.ps1` saves the recording."
    )?;
    writeln!(
        out,
        "- `record boot` records every boot until `record boot-stop` or `boot-cancel`. An old WPR does \
         not know `-boottrace`; use `wpr -start \"{}\" -onoffscenario Boot -numiterations 1`, which \
         restarts at once.",
        kit.profile_argument(&kit.profile_file())
    )?;
    writeln!(
        out,
        "- Windows 7 and Server 2008 R2 walk stacks of 64-bit code only after `wpr \
         -disablepagingexecutive on` and a restart.\n"
    )
}

/// Writes the differences between this kit and the kit with the other level of detail.
fn write_other_detail(out: &mut String, kit: &Kit) -> std::fmt::Result {
    let verbose = kit.with_detail(Detail::Verbose);
    let light = kit.with_detail(Detail::Light);
    let only_verbose: Vec<Kind> = (verbose.capture().kinds())
        .filter(|kind| !light.capture().records(*kind))
        .collect();
    if only_verbose.is_empty() {
        return Ok(());
    }
    let left_out: Vec<&str> = only_verbose.iter().map(|kind| kind.name()).collect();
    let light_judged = light.judged();
    let not_judged: Vec<String> = (verbose.judged().iter())
        .filter(|needs| !light_judged.contains(needs))
        .map(|needs| format!("`{}`", needs.theory))
        .collect();
    let not_judged = if not_judged.is_empty() {
        String::new()
    } else {
        format!(" Theories it cannot judge: {}.", listed(&not_judged))
    };
    let rates = |kit: &Kit| {
        let cost = kit.cost();
        let quiet = megabytes(cost.quiet_bytes_per_second);
        format!(
            "{quiet} per second idle, {} busy",
            megabytes(cost.busy_bytes_per_second)
        )
    };
    match kit.detail {
        Detail::Verbose => writeln!(
            out,
            "\nThe profile also has a light level ({}), which records only the events that the question \
             needs. It leaves out {}.{not_judged} `laglab record --for {} --detail light` makes scripts \
             for it.\n",
            rates(&light),
            listed(&left_out),
            kit.investigation.name()
        ),
        Detail::Light => writeln!(
            out,
            "\nThis is the light level, which records only the events that the question needs. The \
             profile also has a verbose level ({}), which adds {}.{not_judged}\n",
            rates(&verbose),
            listed(&left_out)
        ),
    }
}

fn if_any(only_if_any: bool) -> &'static str {
    if only_if_any {
        ", if the trace has such events: without any, it does not show whether they were recorded"
    } else {
        ""
    }
}

fn write_cost(out: &mut String, kit: &Kit) -> std::fmt::Result {
    let (machine, cost) = (kit.machine, kit.cost());
    let (to_file, of_providers) = kit.buffers(false);
    let (in_memory, _) = kit.buffers(true);
    writeln!(out, "\n## Cost\n")?;
    writeln!(
        out,
        "Made for {} processors and {} GiB of memory. The recording grows by about {} per second on an \
         idle machine and {} on a busy one. This is an estimate from typical event rates, not a \
         measurement. The kernel session has {} buffers of {} KiB if it writes a file ({} of non-paged \
         memory), and {} if it records in memory ({}), which hold about {}.",
        machine.cpus,
        machine.memory_bytes >> 30,
        megabytes(cost.quiet_bytes_per_second),
        megabytes(cost.busy_bytes_per_second),
        to_file.count,
        to_file.size_kib,
        megabytes(to_file.bytes()),
        in_memory.count,
        megabytes(in_memory.bytes()),
        format_duration(cost, in_memory.bytes()),
    )?;
    // Source: K. Dollard, "What does Blazingly Fast Tracing Mean", 2014: two million events per second.
    let least_of_a_cpu = cost.busy_events_per_second as f64 / 2e6;
    writeln!(
        out,
        "A busy machine logs about {} thousand events per second. Their CPU time was not measured. By a published \
         figure, 0.5 µs per event without a stack, it is {:.1} % of all CPU time; stacks take more.",
        cost.busy_events_per_second.div_ceil(1_000),
        100.0 * least_of_a_cpu / f64::from(machine.cpus)
    )?;
    if let Some(buffers) = of_providers {
        writeln!(
            out,
            "The provider session has {} buffers of {} KiB.",
            buffers.count, buffers.size_kib
        )?;
    }
    Ok(())
}

pub(super) fn megabytes(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..10_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{} GB", bytes.div_ceil(1_000_000_000)),
    }
}

fn format_duration(cost: Cost, bytes: u64) -> String {
    let (busy, quiet) = cost.seconds_in(bytes);
    format!("the last {busy} s of a busy machine or {quiet} s of an idle one")
}
