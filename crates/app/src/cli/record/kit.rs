//! `laglab record --for`: writes a kit, which is a folder of profiles and scripts that record the data for a
//! question.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use record::{Cost, Detail, Investigation, Kit, Machine, Needs, Variant, needs};
use serde::Serialize;
use session::NewFile;

use super::run::{self, Recording};
use crate::cli::Failure;
use crate::cli::integer::integer;
use crate::output::{self, Columns, Side, counted};

#[derive(clap::Args)]
pub(super) struct KitOptions {
    /// Question to investigate; see --list
    #[arg(
        long = "for",
        value_name = "INVESTIGATION",
        value_parser = investigation,
        required_unless_present = "list"
    )]
    investigation: Option<Investigation>,
    /// Amount of data: verbose, or light for the minimum that answers the question
    #[arg(long, value_name = "LEVEL", default_value = "verbose", value_parser = detail)]
    detail: Detail,
    /// Folder for the kit [default: laglab-INVESTIGATION]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// List the investigations, and for each of them the theories that `laglab explain` can judge
    #[arg(long, conflicts_with_all = ["investigation", "run", "dry_run"])]
    list: bool,
    /// Print the commands of the recording, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// On Windows only: record now with wpr.exe, then explain the trace. The machine's settings, notes and symbol
    /// ids are saved next to it
    #[arg(long, conflicts_with = "dry_run")]
    run: bool,
    /// Memory of the machine in GiB [default: memory of this machine on Windows, else 16]
    #[arg(long, value_name = "GIB", value_parser = integer::<u64>(1, 1 << 20), help_heading = "The machine")]
    memory: Option<u64>,
    /// Number of logical processors [default: number on this machine on Windows, else 8]
    #[arg(long, value_name = "N", value_parser = integer::<u32>(1, 2048), help_heading = "The machine")]
    cpus: Option<u32>,
    /// Number of NUMA nodes [default: number on this machine on Windows, else 1]
    #[arg(long, value_name = "N", value_parser = integer::<u32>(1, 64), help_heading = "The machine")]
    nodes: Option<u32>,
    /// NUMA node on which the recorder runs. It should not be the investigated node [default: the last of
    /// several nodes]
    #[arg(long, value_name = "N", help_heading = "The machine")]
    node: Option<u32>,
    /// Record as on a large server: without stacks of the most frequent events [default: only if the machine
    /// is a large server]
    #[arg(long, help_heading = "The machine")]
    large_server: bool,
    #[command(flatten)]
    recording: Recording,
}

pub(super) fn investigation(name: &str) -> Result<Investigation, String> {
    Investigation::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Investigation::ALL.iter().map(|i| i.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn detail(name: &str) -> Result<Detail, String> {
    let mut all = Detail::ALL.into_iter();
    let detail = all.find(|detail| detail.name().eq_ignore_ascii_case(name));
    detail.ok_or_else(|| "expected verbose or light".to_owned())
}

pub(super) fn run(args: &KitOptions, json: bool) -> Result<(), Failure> {
    let Some(investigation) = args.investigation.filter(|_| !args.list) else {
        return Ok(list(json)?);
    };
    let (kit, is_assumed) = kit(args, investigation)?;
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => PathBuf::from(kit.name()),
    };
    if args.dry_run {
        let commands = args.recording.commands(&kit, &folder);
        let written = if json {
            output::json(&commands)
        } else {
            run::write_commands(&commands)
        };
        return Ok(written?);
    }
    let files = super::in_folder(&folder, || write_files(&kit, &folder))?;
    if args.run {
        return args.recording.record(&kit, &folder);
    }
    let report = Report::new(&kit, &folder, files);
    let written = if json {
        output::json(&report)
    } else {
        say(&kit, &report, is_assumed)
    };
    Ok(written?)
}

/// Returns the kit that the options select. The second value is true if the size of the machine is unknown
/// and a typical size is assumed.
fn kit(args: &KitOptions, investigation: Investigation) -> Result<(Kit, bool), Failure> {
    let here = Machine::detect();
    let mut machine = here.unwrap_or(Machine::TYPICAL);
    let is_given = [args.memory.is_some(), args.cpus.is_some()];
    machine.memory_bytes = args.memory.map_or(machine.memory_bytes, |gib| gib << 30);
    machine.cpus = args.cpus.unwrap_or(machine.cpus);
    machine.nodes = args.nodes.unwrap_or(machine.nodes);
    let mut kit = Kit::new(investigation, machine).with_detail(args.detail);
    if args.large_server {
        kit.variant = Variant::LargeServer;
    }
    if let Some(node) = args.node {
        if node >= machine.nodes {
            return Err(Failure::Input(format!(
                "there is no NUMA node {node}: the machine has {}, counted from 0; set the number with \
                 --nodes",
                machine.nodes
            )));
        }
        kit.node = Some(node).filter(|_| machine.nodes > 1);
    }
    Ok((kit, here.is_none() && is_given.contains(&false)))
}

fn write_files(kit: &Kit, folder: &Path) -> Result<Vec<String>, Failure> {
    let files = kit.files();
    for file in &files {
        keep_others(&folder.join(&file.name))?;
    }
    let mut names = Vec::new();
    for file in files {
        let path = folder.join(&file.name);
        let new = NewFile::create(&path)?;
        let written = new.file().write_all(file.text.as_bytes());
        written.map_err(|error| Failure::writing(&path, &error))?;
        new.finish()?;
        names.push(file.name);
    }
    Ok(names)
}

/// Maximum number of bytes of a file of a kit.
const MOST_OF_KIT: u64 = 16 << 20;

/// Returns an error if the file exists but is not part of a kit. Replacing it could destroy a file of the user, for
/// example a README.
fn keep_others(path: &Path) -> Result<(), Failure> {
    /// Texts that occur only in files of kits.
    const MADE_BY: [&str; 3] = ["Made by laglab", "A kit of laglab", "Author=\"laglab\""];
    let is_of_kit = match files::read_file(path, MOST_OF_KIT) {
        Ok(there) => {
            let there = String::from_utf8_lossy(&there);
            MADE_BY.iter().any(|made_by| there.contains(made_by))
        }
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_of_kit {
        Ok(())
    } else {
        Err(Failure::input(
            path,
            "the file exists and is not part of a kit; give the kit another folder with -o",
        ))
    }
}

/// JSON output for a kit that was written. Programs rely on its fields.
#[derive(Serialize)]
struct Report {
    folder: String,
    files: Vec<String>,
    #[serde(flatten)]
    contents: Contents,
}

/// JSON output: data that an investigation records. Programs rely on its fields.
#[derive(Serialize)]
struct Contents {
    investigation: &'static str,
    question: &'static str,
    detail: String,
    kernel_keywords: Vec<&'static str>,
    stacks: Vec<&'static str>,
    providers: Vec<&'static str>,
    judged: Vec<&'static str>,
    not_recorded: Vec<&'static str>,
    quiet_bytes_per_second: u64,
    busy_bytes_per_second: u64,
    busy_events_per_second: u64,
}

impl Contents {
    fn from_kit(kit: &Kit) -> Contents {
        let capture = kit.capture();
        let (judged, open): (Vec<&Needs>, Vec<&Needs>) = needs::THEORIES
            .iter()
            .partition(|needs| needs.are_met_by(&capture));
        let Cost {
            quiet_bytes_per_second,
            busy_bytes_per_second,
            busy_events_per_second,
        } = kit.cost();
        let enabled = capture.providers().iter();
        Contents {
            investigation: kit.investigation.name(),
            question: kit.investigation.question(),
            detail: kit.detail.name().to_lowercase(),
            kernel_keywords: capture.keywords().map(|keyword| keyword.wpr()).collect(),
            stacks: capture.stacks().map(|stack| stack.wpr()).collect(),
            providers: enabled.map(|enabled| enabled.provider.name()).collect(),
            judged: judged.iter().map(|needs| needs.theory).collect(),
            not_recorded: open.iter().map(|needs| needs.theory).collect(),
            quiet_bytes_per_second,
            busy_bytes_per_second,
            busy_events_per_second,
        }
    }
}

impl Report {
    fn new(kit: &Kit, folder: &Path, files: Vec<String>) -> Report {
        Report {
            folder: folder.display().to_string(),
            files,
            contents: Contents::from_kit(kit),
        }
    }
}

fn say(kit: &Kit, report: &Report, is_assumed: bool) -> io::Result<()> {
    let mut out = output::for_people();
    let contents = &report.contents;
    output::first_heading(&mut out, contents.question)?;
    let mut columns = Columns::new(&[Side::Left, Side::Left]);
    let rate = |bytes: u64| output::size(bytes);
    let machine = kit.machine;
    let assumed = if is_assumed {
        " (assumed; set with --memory and --cpus)"
    } else {
        ""
    };
    for (what, value) in [
        (
            "kit",
            format!("{} ({})", report.folder, report.files.join(", ")),
        ),
        (
            "machine",
            format!(
                "{}, {}{assumed}",
                counted(u64::from(machine.cpus), "CPU", "CPUs"),
                output::size(machine.memory_bytes)
            ),
        ),
        ("detail", contents.detail.clone()),
        ("keywords", contents.kernel_keywords.join(", ")),
        ("stacks", or_none(&contents.stacks)),
        ("providers", or_none(&contents.providers)),
        (
            "grows by",
            format!(
                "about {}/s on an idle machine, {}/s on a busy machine (estimated)",
                rate(contents.quiet_bytes_per_second),
                rate(contents.busy_bytes_per_second)
            ),
        ),
        ("judged", contents.judged.join(", ")),
        ("not recorded", or_none(&contents.not_recorded)),
    ] {
        columns.row([what.to_owned(), value]);
    }
    columns.write(&mut out)?;
    output::heading(
        &mut out,
        "Run this on the machine that lags, as administrator, in the kit's folder",
    )?;
    output::verbatim(&mut out, "record")?;
    out.flush()
}

fn or_none(names: &[&str]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn list(json: bool) -> io::Result<()> {
    let kits = Investigation::ALL.map(|asked| Kit::new(asked, Machine::TYPICAL));
    if json {
        return output::json(&kits.each_ref().map(Contents::from_kit));
    }
    let mut out = output::for_people();
    let mut columns = Columns::new(&[Side::Left, Side::Left, Side::Left]);
    for kit in kits {
        columns.row([
            kit.investigation.name(),
            kit.investigation.question(),
            &kit.investigation.theories().join(", "),
        ]);
    }
    columns.write(&mut out)?;
    out.flush()
}
