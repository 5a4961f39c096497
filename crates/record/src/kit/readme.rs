//! What to know about a kit before it records.

use std::fmt::Write as _;

use super::{Kit, Variant};
use crate::needs::{THEORIES, listed};
use crate::{Cost, Provider};

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
            "record cancel",
            r".\record.ps1 Cancel",
        ),
    ] {
        writeln!(out, "| {what} | `{batch}` | `{powershell}` |")?;
    }
    writeln!(
        out,
        "\n`record-xperf` does the same with xperf, save for boots. Where scripts may not run: \
         `powershell -ExecutionPolicy Bypass -File record.ps1`. Temporary files go to `temp` here, so \
         put the folder on a quick disk that is not what is investigated. Recording for a number of \
         seconds first ends an earlier recording of the same recorder. Windows 7 and Server 2008 R2 \
         walk no stacks of 64-bit code until `wpr -disablepagingexecutive on` and a restart.\n"
    )?;

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
    writeln!(
        out,
        "Names of programs, files and, with packets, what is sent are in a trace: `laglab trim \
         --redact` takes them out before it is shared."
    )?;
    if kit.variant == Variant::LargeServer {
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
             it too, and keep its trace beside the other. Give both to `laglab explain`."
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
         machine. The kernel's session has {} buffers of {} KiB when it writes a file, and {} in \
         memory, which then holds about {}.",
        machine.cpus,
        machine.memory_bytes >> 30,
        megabytes(cost.quiet_bytes_per_second),
        megabytes(cost.busy_bytes_per_second),
        to_file.count,
        to_file.size_kib,
        in_memory.count,
        lasting(cost, in_memory.bytes()),
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

fn megabytes(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        _ => format!("{} MB", bytes.div_ceil(1_000_000)),
    }
}

fn lasting(cost: Cost, bytes: u64) -> String {
    let (busy, quiet) = cost.seconds_in(bytes);
    format!("the last {busy} s of a busy machine, {quiet} s of a quiet one")
}
