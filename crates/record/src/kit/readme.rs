//! What to know about a kit before it records.

use std::fmt::Write as _;

use super::{Detail, Kit, Variant};
use crate::needs::{THEORIES, listed};
use crate::{Cost, Kind, Provider};

pub(super) fn write(kit: &Kit) -> String {
    let mut text = String::new();
    let out = &mut text;
    let _ = write_sections(out, kit);
    text
}

fn write_sections(out: &mut String, kit: &Kit) -> std::fmt::Result {
    let (name, capture) = (kit.name(), kit.capture());
    writeln!(out, "# {}\n", kit.investigation.question())?;
    writeln!(
        out,
        "A kit of laglab that records what answers this question. From an elevated prompt, in this \
         folder:\n"
    )?;
    writeln!(out, "| what | batch file | PowerShell |\n|---|---|---|")?;
    for (what, batch, powershell) in [
        ("record for 20 s", "record", r".\record.ps1"),
        (
            "for a minute, with a word on it",
            "record 60 \"after resume\"",
            r#".\record.ps1 -Seconds 60 -Note "after resume""#,
        ),
        (
            "start; stop",
            "record start; record stop",
            r".\record.ps1 Start; … Stop",
        ),
        (
            "keep what just happened, in memory; save it when it lagged",
            "record circular; record save",
            r".\record.ps1 Circular; … Save",
        ),
        (
            "mark a moment",
            "record mark \"now\"",
            r#".\record.ps1 Mark -Note "now""#,
        ),
        (
            "the next boot; after it",
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
    write_before(out, kit)?;

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
        "Names of programs, files and, with packets, what is sent are in a trace: `laglab trim \
         --redact` takes them out before it is shared."
    )?;
    if kit.variant == Variant::LargeServer && kit.detail == Detail::Verbose {
        writeln!(
            out,
            "\nThis is the variant for large servers: stacks of context switches and of what made \
             threads ready are left out, and buffers are counted, not taken as a part of the memory."
        )?;
    }
    if let Some(node) = kit.node {
        writeln!(
            out,
            "\nThe recorder is started with high priority on NUMA node {node}; on a machine that has \
             no such node `start` fails, and `/node {node}` is to be taken out of the scripts."
        )?;
    }
    if kit.has_packets() {
        writeln!(
            out,
            "\nPackets need a filter driver that `netsh trace` binds to the adapters: the scripts start \
             it too, and keep its trace (a GiB at most) beside the other. Give both to \
             `laglab explain`."
        )?;
    }
    if kit.has_provider(Provider::Input) {
        writeln!(
            out,
            "\nTimes of keys and of changes of the window in front are recorded only while \
             `laglab record input` runs beside it; which key it was is never recorded unless asked for."
        )?;
    }

    write_cost(out, kit)?;

    writeln!(out, "\n## What `laglab explain` can judge by it\n")?;
    let judged = kit.judges();
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
        writeln!(out, "\nBeside these: {}.", listed(&also))?;
    }
    let open: Vec<String> = (THEORIES.iter())
        .filter(|needs| !judged.contains(needs))
        .map(|needs| format!("`{}`", needs.theory))
        .collect();
    if !open.is_empty() {
        writeln!(out, "Not recorded will be: {}.", listed(&open))?;
    }
    writeln!(out, "\n`laglab explain {name}-1.etl` answers.")
}

/// What to know before it is run on a machine that people need.
fn write_before(out: &mut String, kit: &Kit) -> std::fmt::Result {
    let cost = kit.cost();
    writeln!(
        out,
        "\n`record-xperf` does the same with xperf, save for boots. Where scripts may not run: \
         `powershell -ExecutionPolicy Bypass -File record.ps1`.\n"
    )?;
    writeln!(out, "Before it is run on a machine that people need:\n")?;
    writeln!(
        out,
        "- There is one kernel logger. While another program records with it, starting fails; `logman \
         query -ets` lists what records. Only recordings that these scripts started, and that nobody \
         stopped, are ended by a new one."
    )?;
    writeln!(
        out,
        "- To a file, a recording grows until it is stopped or the disk is full: in a minute by {} or so \
         while the machine is busy. Temporary files go to `temp` here, and what is saved is as large \
         again: put the folder on a quick disk with room that is not what is investigated.",
        megabytes(cost.busy_bytes_per_second * 60)
    )?;
    writeln!(
        out,
        "- After Ctrl-C the batch files leave the recorder running (`record stop`, `record cancel`); \
         `record.ps1` saves what there is."
    )?;
    writeln!(
        out,
        "- `record boot` records every start of Windows until `record boot-stop` or `boot-cancel`. Where \
         WPR is so old that it knows no `-boottrace`, `wpr -start \"{}\" -onoffscenario Boot \
         -numiterations 1` does it, and restarts at once.",
        kit.profile_of(&kit.profile_file())
    )?;
    writeln!(
        out,
        "- Windows 7 and Server 2008 R2 walk no stacks of 64-bit code until `wpr -disablepagingexecutive \
         on` and a restart.\n"
    )
}

/// What the form of the other detail leaves out, or has more.
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
    let judged_by_light = light.judges();
    let not_judged: Vec<String> = (verbose.judges().iter())
        .filter(|needs| !judged_by_light.contains(needs))
        .map(|needs| format!("`{}`", needs.theory))
        .collect();
    let not_judged = match not_judged.is_empty() {
        true => String::new(),
        false => format!(" Not judged by it: {}.", listed(&not_judged)),
    };
    let rates = |kit: &Kit| {
        let cost = kit.cost();
        let quiet = megabytes(cost.quiet_bytes_per_second);
        format!(
            "{quiet} a second, {} while busy",
            megabytes(cost.busy_bytes_per_second)
        )
    };
    match kit.detail {
        Detail::Verbose => writeln!(
            out,
            "\nThe profile has a light form, too: it answers the same question with less, by the events \
             that it cannot do without ({}). It leaves out {}.{not_judged} `laglab record --for {} \
             --detail light` makes scripts for it.\n",
            rates(&light),
            listed(&left_out),
            kit.investigation.name()
        ),
        Detail::Light => writeln!(
            out,
            "\nThis is the light form: what the question cannot be answered without. The verbose one \
             ({}), which is in the profile too, has in addition {}.{not_judged}\n",
            rates(&verbose),
            listed(&left_out)
        ),
    }
}

fn if_any(only_if_any: bool) -> &'static str {
    match only_if_any {
        true => {
            ", if anything of the kind happens: a trace does not tell \"none\" from \"not recorded\""
        }
        false => "",
    }
}

fn write_cost(out: &mut String, kit: &Kit) -> std::fmt::Result {
    let (machine, cost) = (kit.machine, kit.cost());
    let (to_file, of_providers) = kit.buffers(false);
    let (in_memory, _) = kit.buffers(true);
    writeln!(out, "\n## What it costs\n")?;
    writeln!(
        out,
        "Made for {} processors and {} GiB of memory. It grows by some {} a second while the machine \
         does little and {} while it is busy: an estimate from usual rates of events, measured on no \
         machine. The kernel's session has {} buffers of {} KiB when it writes a file ({} of memory that \
         is not paged), and {} in memory ({}), which then holds about {}.",
        machine.cpus,
        machine.memory_bytes >> 30,
        megabytes(cost.quiet_bytes_per_second),
        megabytes(cost.busy_bytes_per_second),
        to_file.count,
        to_file.size_kib,
        megabytes(to_file.bytes()),
        in_memory.count,
        megabytes(in_memory.bytes()),
        lasting(cost, in_memory.bytes()),
    )?;
    // K. Dollard, "What does Blazingly Fast Tracing Mean", 2014: two million events in a second.
    let least_of_a_cpu = cost.busy_events_per_second as f64 / 2e6;
    writeln!(
        out,
        "Busy, that is some {} thousand events in a second. What they take of the processors was not \
         measured either: at half a microsecond, which somebody measured for an event without a stack, \
         {:.1} % of their time; stacks make it more.",
        cost.busy_events_per_second.div_ceil(1_000),
        100.0 * least_of_a_cpu / f64::from(machine.cpus)
    )?;
    if let Some(buffers) = of_providers {
        writeln!(
            out,
            "The providers' session has {} buffers of {} KiB.",
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

fn lasting(cost: Cost, bytes: u64) -> String {
    let (busy, quiet) = cost.seconds_in(bytes);
    format!("the last {busy} s of a busy machine, {quiet} s of a quiet one")
}
