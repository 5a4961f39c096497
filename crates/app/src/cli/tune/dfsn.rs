//! `laglab tune dfsn`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tune::dfsn::{
    self, Change, Export, Judgement, Left, Migration, Names, Reason, Referrals, ServerName, Step,
    WhyLeft,
};

use super::read;
use crate::cli::{Failure, NewFile};
use crate::output::{self, Columns, Side};

/// Moves a DFS namespace to other servers and to full names: rewrites its export, lists the steps, and
/// judges by what clients hold whether to go on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune dfsn rewrite export.xml --suffix corp.example            what would change\n  \
    laglab tune dfsn rewrite export.xml --suffix corp.example -o export-full.xml\n  \
    laglab tune dfsn runbook '\\\\corp.example\\Public' --old FILE1 --new file2.corp.example\n  \
    laglab tune dfsn gate old-gone referrals.txt --namespace '\\\\corp.example\\Public' --old FILE1 \
    --new file2.corp.example\n\n\
    Exit code 1: wait (gate), or names are left that no rule makes full (rewrite).")]
pub(super) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Full names for the servers of an export; without -o it only says what would change
    Rewrite(RewriteArgs),
    /// The steps of a migration, with what must be seen before each goes on
    Runbook(RunbookArgs),
    /// Whether clients are ready for the next step, by what `dfsutil cache referral` shows on them
    Gate(GateArgs),
}

#[derive(clap::Args)]
struct RewriteArgs {
    /// What `dfsutil root export` wrote
    #[arg(value_name = "EXPORT.xml")]
    export: PathBuf,
    /// This server's name becomes that one
    #[arg(long, value_name = "OLD=FULL", value_parser = mapping)]
    map: Vec<(ServerName, ServerName)>,
    /// Other short names get this domain
    #[arg(long, value_name = "DOMAIN", value_parser = name)]
    suffix: Option<ServerName>,
    /// Where to write the rewritten export
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
struct RunbookArgs {
    /// The namespace's path, \\domain\namespace
    namespace: String,
    #[command(flatten)]
    servers: Servers,
    /// Where namespaces' roots are on the servers
    #[arg(long, value_name = "FOLDER", default_value = "C:\\DFSRoots")]
    roots: String,
}

#[derive(clap::Args)]
struct GateArgs {
    /// What clients must have come to
    gate: Gate,
    /// What `dfsutil cache referral` or `dfsutil /pktinfo` printed, a file per client
    #[arg(value_name = "REFERRALS.txt", required = true)]
    referrals: Vec<PathBuf>,
    /// The namespace's path, \\domain\namespace
    #[arg(long, value_name = "PATH")]
    namespace: String,
    #[command(flatten)]
    servers: Servers,
    /// When the output was saved, as 2026-03-01T10:00:00Z [default: when the file was changed last]
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
}

#[derive(clap::Args)]
struct Servers {
    /// A namespace server that is to go
    #[arg(long, value_name = "SERVER", value_parser = name, required = true)]
    old: Vec<ServerName>,
    /// A namespace server that comes instead, by its full name
    #[arg(long, value_name = "SERVER", value_parser = name, required = true)]
    new: Vec<ServerName>,
}

/// Before which step clients are judged.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// Clients know all new servers: the old ones may be disabled
    NewKnown,
    /// Clients know no old server: they may be removed
    OldGone,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.task {
        Task::Rewrite(args) => rewrite(args, json),
        Task::Runbook(args) => runbook(args, json),
        Task::Gate(args) => gate(args, json),
    }
}

/// What was rewritten, in its stable shape for programs.
#[derive(Serialize)]
struct RewriteReport<'a> {
    namespace: &'a str,
    links: usize,
    targets: usize,
    changes: &'a [Change],
    left: &'a [Left],
    written: Option<&'a Path>,
}

fn rewrite(args: &RewriteArgs, json: bool) -> Result<(), Failure> {
    let path = &args.export;
    let bytes = read(path, Export::MOST_BYTES as u64)?;
    let export = Export::read(&bytes).map_err(|error| Failure::input(path, error))?;
    let names = Names {
        map: args.map.clone(),
        suffix: args.suffix.clone(),
    };
    let rewritten = dfsn::rewrite(&export, &names).map_err(|error| Failure::input(path, error))?;
    if let Some(to) = &args.output {
        let file = NewFile::create(to)?;
        let written = file.file().write_all(&rewritten.bytes);
        written.map_err(|error| Failure::input(to, error))?;
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
    match json {
        true => output::json(&report)?,
        false => write_report(&report)?,
    }
    let open = |left: &&Left| matches!(left.why, WhyLeft::NoRule | WhyLeft::TooLong);
    match rewritten.left.iter().filter(open).count() {
        0 => Ok(()),
        count => Err(Failure::Negative(format!(
            "short names are left ({count}); --suffix or --map says what they become"
        ))),
    }
}

fn write_report(report: &RewriteReport<'_>) -> Result<(), Failure> {
    let mut out = output::for_people();
    let count = format!(
        "{}: links {}, targets {}",
        report.namespace, report.links, report.targets
    );
    output::first_heading(&mut out, &count)?;
    if report.changes.is_empty() {
        output::paragraph(&mut out, "No name changes.")?;
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
        output::heading(&mut out, "Left as they are")?;
        let mut columns = Columns::new(&[Side::Right, Side::Left, Side::Left, Side::Left]);
        for left in report.left {
            let why = match left.why {
                WhyLeft::NamespaceServer => {
                    "a namespace server, which commands of their own add and remove"
                }
                WhyLeft::Address => "an address, no name",
                WhyLeft::NoRule => "no rule says what it becomes",
                WhyLeft::TooLong => "too long with the suffix",
                WhyLeft::Twice => "leads where another target of the link does already",
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
                "{} was written and read again: it differs from the export in these names only.",
                path.display()
            ),
        )?,
        None => output::paragraph(&mut out, "Nothing was written; -o FILE does.")?,
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
    let steps = dfsn::runbook(&migration).map_err(|error| Failure::Input(error.to_string()))?;
    if json {
        output::json(&steps)?;
        return Ok(());
    }
    // Markdown, which goes into a file or a ticket as it is.
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
        capital(&step.place)
    )?;
    if !step.commands.is_empty() {
        writeln!(out, "\n```bat")?;
        for command in &step.commands {
            writeln!(out, "{}", output::Printable(command))?;
        }
        writeln!(out, "```")?;
    }
    writeln!(out, "\nBefore going on:\n")?;
    for line in &step.before_going_on {
        writeln!(out, "- [ ] {}", output::Printable(line))?;
    }
    if let Some(undo) = &step.undo {
        writeln!(out, "\nThe way back: {}.", output::Printable(undo))?;
    }
    Ok(())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// What a gate says of a client, in its stable shape for programs.
#[derive(Serialize)]
struct Client<'a> {
    file: &'a Path,
    #[serde(flatten)]
    judgement: Judgement,
    /// In UTC.
    wait_until: Option<String>,
}

fn gate(args: &GateArgs, json: bool) -> Result<(), Failure> {
    let gate = match args.gate {
        Gate::NewKnown => dfsn::Gate::NewKnown,
        Gate::OldGone => dfsn::Gate::OldGone,
    };
    let mut clients = Vec::new();
    for file in &args.referrals {
        let text =
            text(&read(file, 16 << 20)?).ok_or_else(|| Failure::input(file, "is no text"))?;
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
    match json {
        true => output::json(&clients)?,
        false => write_clients(&clients)?,
    }
    let waiting = clients
        .iter()
        .filter(|client| !client.judgement.proceed)
        .count();
    match waiting {
        0 => Ok(()),
        _ => Err(Failure::Negative(format!(
            "wait: not ready are {waiting} of {} clients",
            clients.len()
        ))),
    }
}

/// A moment so many seconds later, in UTC.
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
                    "The referrals in the way expire at {until}; look again then. A client that holds files of the \
                 namespace open keeps them longer: close the files, flush (dfsutil cache referral flush), or \
                 restart it."
                ),
            )?;
        }
    }
    out.flush()?;
    Ok(())
}

fn sentence(reason: &Reason) -> String {
    match reason {
        Reason::NoReferral => "The client holds no referral of the namespace, which proves nothing: open the namespace there and save the output again.".to_owned(),
        Reason::Empty { line } => format!("line {line}: the referral lists no target."),
        Reason::OldListed { line, server, active } => format!(
            "line {line}: the old server {server} is listed{}.",
            if *active { ", and the client uses it" } else { "" }
        ),
        Reason::NewMissing { line, server } => format!("line {line}: the new server {server} is not listed."),
        Reason::NewByShortName { line, server } => format!(
            "line {line}: the new server {server} is listed by its short name: DfsDnsConfig is not set there, or its service was not restarted since."
        ),
        Reason::Unknown { line, server } => format!("line {line}: {server} is neither an old nor a new server."),
        Reason::Failed { line, server, status } => format!("line {line}: the last use of {server} failed ({status:#010x})."),
    }
}

/// The text of a file: UTF-8, or UTF-16 as PowerShell redirects it.
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
