//! `laglab tune dfsn`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use dfsn::{
    self, Change, Export, Judgement, Migration, Names, Reason, Referrals, ServerName, Step,
    UnchangedReason, UnchangedTarget,
};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use session::NewFile;

use super::{chain, failure};
use crate::cli::Failure;
use crate::output::{self, Columns, Side, counted};

/// Moves a DFS namespace to other servers and to full server names. It rewrites an export of the namespace,
/// lists the steps, and checks the referrals of clients between the steps.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune dfsn rewrite export.xml --suffix corp.example            print the changes\n  \
    laglab tune dfsn rewrite export.xml --suffix corp.example -o export-full.xml\n  \
    laglab tune dfsn runbook '\\\\corp.example\\Public' --old FILE1 --new file2.corp.example\n  \
    laglab tune dfsn gate old-gone referrals.txt --namespace '\\\\corp.example\\Public' --old FILE1 \
    --new file2.corp.example\n\n\
    Exit code 1: clients are not ready (gate), or short names without a rule are left (rewrite).")]
pub(super) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Replace the server names in an export by full names; without -o only print the changes
    Rewrite(RewriteArgs),
    /// Print the steps of a migration with commands, checks and undo
    Runbook(RunbookArgs),
    /// Check from `dfsutil cache referral` whether clients are ready for the next step
    Gate(GateArgs),
}

#[derive(clap::Args)]
struct RewriteArgs {
    /// Output file of `dfsutil root export`
    #[arg(value_name = "EXPORT.xml")]
    export: PathBuf,
    /// Replace the server name OLD by FULL
    #[arg(long, value_name = "OLD=FULL", value_parser = mapping)]
    map: Vec<(ServerName, ServerName)>,
    /// Domain that is appended to all other short server names
    #[arg(long, value_name = "DOMAIN", value_parser = name)]
    suffix: Option<ServerName>,
    /// File for the rewritten export
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
struct RunbookArgs {
    /// Path of the namespace, \\domain\namespace
    namespace: String,
    #[command(flatten)]
    servers: Servers,
    /// Local folder of the namespace roots on the servers
    #[arg(long, value_name = "FOLDER", default_value = "C:\\DFSRoots")]
    roots: String,
}

#[derive(clap::Args)]
struct GateArgs {
    /// Condition that clients must meet before the next step
    gate: Gate,
    /// Output of `dfsutil cache referral` or `dfsutil /pktinfo`, one file per client
    #[arg(value_name = "REFERRALS.txt", required = true)]
    referrals: Vec<PathBuf>,
    /// Path of the namespace, \\domain\namespace
    #[arg(long, value_name = "PATH")]
    namespace: String,
    #[command(flatten)]
    servers: Servers,
    /// Time when the output was saved, such as 2026-03-01T10:00:00Z [default: modification time of the file]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
}

#[derive(clap::Args)]
struct Servers {
    /// Old namespace server
    #[arg(long, value_name = "SERVER", value_parser = name, required = true)]
    old: Vec<ServerName>,
    /// New namespace server, by its full name
    #[arg(long, value_name = "SERVER", value_parser = name, required = true)]
    new: Vec<ServerName>,
}

/// Condition that clients must meet before a step of the migration.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// Clients know all new servers, so the old servers may be disabled
    NewKnown,
    /// Clients know no old server, so the old servers may be removed
    OldGone,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.task {
        Task::Rewrite(args) => rewrite(args, json),
        Task::Runbook(args) => runbook(args, json),
        Task::Gate(args) => gate(args, json),
    }
}

/// JSON output of `laglab tune dfsn rewrite`. Programs rely on its fields.
#[derive(Serialize)]
struct RewriteReport<'a> {
    namespace: &'a str,
    links: usize,
    targets: usize,
    changes: &'a [Change],
    left: &'a [UnchangedTarget],
    written: Option<&'a Path>,
}

fn rewrite(args: &RewriteArgs, json: bool) -> Result<(), Failure> {
    let path = &args.export;
    let bytes = Failure::read(path, Export::MAX_BYTES as u64)?;
    let export = Export::read(&bytes).map_err(|error| Failure::input(path, chain(&error)))?;
    let names = Names {
        map: args.map.clone(),
        suffix: args.suffix.clone(),
    };
    let rewritten =
        dfsn::rewrite(&export, &names).map_err(|error| Failure::input(path, chain(&error)))?;
    if let Some(to) = &args.output {
        let file = NewFile::create(to)?;
        let written = file.file().write_all(&rewritten.bytes);
        written.map_err(|error| Failure::writing(to, &error))?;
        file.finish()?;
    }
    let report = RewriteReport {
        namespace: &export.namespace,
        links: export.links,
        targets: export.targets.len(),
        changes: &rewritten.changes,
        left: &rewritten.left,
        written: args.output.as_deref(),
    };
    if json {
        output::json(&report)?
    } else {
        write_report(&report)?
    }
    let open = |left: &&UnchangedTarget| {
        matches!(left.why, UnchangedReason::NoRule | UnchangedReason::TooLong)
    };
    match rewritten.left.iter().filter(open).count() {
        0 => Ok(()),
        count => Err(Failure::Negative(format!(
            "{count} short names are left: give rules with --suffix or --map"
        ))),
    }
}

fn write_report(report: &RewriteReport<'_>) -> Result<(), Failure> {
    let mut out = output::for_people();
    let count = format!(
        "{}: {}, {}",
        report.namespace,
        counted(report.links as u64, "link", "links"),
        counted(report.targets as u64, "target", "targets")
    );
    output::first_heading(&mut out, &count)?;
    if report.changes.is_empty() {
        output::paragraph(&mut out, "No names change.")?;
    } else {
        let mut columns = Columns::new(&[Side::Right, Side::Left, Side::Left, Side::Left]);
        columns.row(["Line", "Link", "Server", "becomes"]);
        for Change {
            line,
            link,
            from,
            to,
        } in report.changes
        {
            columns.row([&line.to_string(), link, from, to]);
        }
        columns.write(&mut out)?;
    }
    if !report.left.is_empty() {
        output::heading(&mut out, "Not changed")?;
        let mut columns = Columns::new(&[Side::Right, Side::Left, Side::Left, Side::Left]);
        for left in report.left {
            let why = match left.why {
                UnchangedReason::NamespaceServer => {
                    "namespace server: separate commands add and remove it"
                }
                UnchangedReason::Address => "IP address",
                UnchangedReason::NoRule => "no rule applies",
                UnchangedReason::TooLong => "too long with the suffix",
                UnchangedReason::Twice => {
                    "duplicate: another target of the link has this server and folder"
                }
            };
            let link = left.link.as_deref().unwrap_or("(root)");
            columns.row([&left.line.to_string(), link, &left.server, why]);
        }
        columns.write(&mut out)?;
    }
    writeln!(out)?;
    match report.written {
        Some(path) => output::paragraph(
            &mut out,
            &format!(
                "Wrote {} and verified it: only these names differ from the export.",
                path.display()
            ),
        )?,
        None => output::paragraph(&mut out, "No file was written: give one with -o.")?,
    }
    out.flush()?;
    Ok(())
}

fn runbook(args: &RunbookArgs, json: bool) -> Result<(), Failure> {
    let migration = Migration {
        namespace: args.namespace.clone(),
        old: args.servers.old.clone(),
        new: args.servers.new.clone(),
        roots: args.roots.clone(),
    };
    let steps = dfsn::runbook(&migration).map_err(|error| failure(&error))?;
    if json {
        output::json(&steps)?;
        return Ok(());
    }
    // The output is Markdown, so that it can become a file or the text of a ticket.
    let mut out = output::for_people();
    writeln!(out, "# Migration of {}", output::Printable(&args.namespace))?;
    for (number, step) in steps.iter().enumerate() {
        write_step(&mut out, number + 1, step)?;
    }
    out.flush()?;
    Ok(())
}

fn write_step(out: &mut dyn Write, number: usize, step: &Step) -> Result<(), Failure> {
    writeln!(
        out,
        "\n## {number}. {}\n\n{}:",
        step.title,
        wording::capitalized(&step.place)
    )?;
    if !step.commands.is_empty() {
        writeln!(out, "\n```bat")?;
        for command in &step.commands {
            writeln!(out, "{}", output::Printable(command))?;
        }
        writeln!(out, "```")?;
    }
    writeln!(out, "\nBefore the next step:\n")?;
    for line in &step.before_going_on {
        writeln!(out, "- [ ] {}", output::Printable(line))?;
    }
    if let Some(undo) = &step.undo {
        writeln!(out, "\nUndo: {}.", output::Printable(undo))?;
    }
    Ok(())
}

/// JSON output: state of one client at a gate. Programs rely on its fields.
#[derive(Serialize)]
struct Client<'a> {
    file: &'a Path,
    #[serde(flatten)]
    judgement: Judgement,
    /// Time in UTC when the last blocking referral of the client expires; `null` if unknown.
    wait_until: Option<String>,
}

fn gate(args: &GateArgs, json: bool) -> Result<(), Failure> {
    let gate = match args.gate {
        Gate::NewKnown => dfsn::Gate::NewKnown,
        Gate::OldGone => dfsn::Gate::OldGone,
    };
    let mut clients = Vec::new();
    for file in &args.referrals {
        let text = text(&Failure::read(file, 16 << 20)?)
            .ok_or_else(|| Failure::input(file, "not a text file"))?;
        let referrals = Referrals::read(&text).map_err(|error| Failure::input(file, error))?;
        let judgement = gate.judge(
            &referrals,
            &args.namespace,
            &args.servers.old,
            &args.servers.new,
        );
        let changed = || fs::metadata(file).ok()?.modified().ok();
        let saved = args.at.or_else(|| Timestamp::try_from(changed()?).ok());
        let wait = judgement
            .wait_s
            .and_then(|seconds| i64::try_from(seconds).ok());
        clients.push(Client {
            file,
            wait_until: saved.zip(wait).and_then(|(saved, wait)| until(saved, wait)),
            judgement,
        });
    }
    if json {
        output::json(&clients)?
    } else {
        write_clients(&clients)?
    }
    let waiting = clients
        .iter()
        .filter(|client| !client.judgement.proceed)
        .count();
    match waiting {
        0 => Ok(()),
        _ => Err(Failure::Negative(format!(
            "wait: {waiting} of {} clients are not ready",
            clients.len()
        ))),
    }
}

/// Formats in UTC the time that is `seconds` after `saved`.
fn until(saved: Timestamp, seconds: i64) -> Option<String> {
    let until = saved.checked_add(SignedDuration::from_secs(seconds)).ok()?;
    Some(until.round(jiff::Unit::Second).unwrap_or(until).to_string())
}

fn write_clients(clients: &[Client<'_>]) -> Result<(), Failure> {
    let mut out = output::for_people();
    for (number, client) in clients.iter().enumerate() {
        let Judgement {
            proceed,
            reasons,
            notes,
            ..
        } = &client.judgement;
        let verdict = if *proceed { "proceed" } else { "wait" };
        let title = format!("{}: {verdict}", client.file.display());
        match number {
            0 => output::first_heading(&mut out, &title)?,
            _ => output::heading(&mut out, &title)?,
        }
        for reason in reasons {
            output::warning(&mut out, &sentence(reason))?;
        }
        for note in notes {
            output::quiet(&mut out, &sentence(note))?;
        }
        if let Some(until) = &client.wait_until {
            output::paragraph(
                &mut out,
                &format!(
                    "The blocking referrals expire at {until}: check again then. A client with open files of the \
                     namespace keeps its referrals longer: close the files, flush the referrals (dfsutil cache \
                     referral flush), or restart the client."
                ),
            )?;
        }
    }
    out.flush()?;
    Ok(())
}

fn sentence(reason: &Reason) -> String {
    match reason {
        Reason::NoReferral => "The client has no referral of the namespace, which proves nothing: open the namespace there and save the output again.".to_owned(),
        Reason::Empty { line } => format!("line {line}: the referral has no target."),
        Reason::OldListed { line, server, active } => format!(
            "line {line}: the old server {server} is listed{}.",
            if *active { ", and the client uses it" } else { "" }
        ),
        Reason::NewMissing { line, server } => format!("line {line}: the new server {server} is not listed."),
        Reason::NewByShortName { line, server } => format!(
            "line {line}: the new server {server} is listed by its short name: set DfsDnsConfig there and restart its service Dfs."
        ),
        Reason::Unknown { line, server } => format!("line {line}: {server} is neither an old nor a new server."),
        Reason::Failed { line, server, status } => format!("line {line}: the last use of {server} failed ({status:#010x})."),
    }
}

/// Decodes UTF-8, or the UTF-16 that PowerShell writes if output is redirected.
fn text(bytes: &[u8]) -> Option<String> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => {
            let units = rest
                .chunks_exact(2)
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).collect::<Result<_, _>>().ok()
        }
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

fn name(text: &str) -> Result<ServerName, String> {
    ServerName::new(text).map_err(|error| error.to_string())
}

fn mapping(text: &str) -> Result<(ServerName, ServerName), String> {
    let (old, new) = text
        .split_once('=')
        .ok_or("expected OLD=FULL, such as FILE1=file1.corp.example")?;
    Ok((name(old)?, name(new)?))
}
