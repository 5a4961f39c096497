//! Why a QoS policy would not mark packets.

use std::io::{self, Write};
use std::path::PathBuf;

use tune::decode::dscp::{self, Asked, Policy};
use tune::found::{At, Found, Origin, Place};
use tune::registry::{Key, Value};

use crate::cli::Failure;
use crate::cli::tune::said;
use crate::output::{self, Printable};

/// Says whether QoS policies mark packets of a program on a machine, and why not.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune explain dscp settings.reg --program game.exe --workgroup\n  \
    laglab tune explain dscp --value 'DSCP Value=46' --value 'Application Name=game.exe' --workgroup\n  \
    laglab tune explain dscp --value 'DSCP Value=dword:46'")]
pub(super) struct Args {
    /// Files that have policies: .reg exports, hives and all else that `laglab tune audit` reads
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// A value of a policy, as NAME=TEXT; NAME=dword:NUMBER for one of the wrong type
    #[arg(
        long,
        value_name = "NAME=TEXT",
        required_unless_present = "inputs",
        conflicts_with = "inputs",
        value_parser = value
    )]
    value: Vec<(String, Value)>,
    /// The program that is to be marked, by its file's name or path
    #[arg(long, value_name = "EXE")]
    program: Option<String>,
    /// The machine is in a domain
    #[arg(long, conflicts_with = "workgroup")]
    domain: bool,
    /// The machine is in a workgroup
    #[arg(long)]
    workgroup: bool,
    /// "Do not use NLA" as it is set, as TEXT or dword:NUMBER
    #[arg(long, value_name = "TEXT", value_parser = typed)]
    nla: Option<Value>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let found = |key: &str, name: &str, value: &Value| {
        Key::new(key).map(|key| Found {
            place: Place::Registry {
                key,
                name: name.to_owned(),
            },
            value: Some(value.clone()),
            origin: Origin {
                source: "the command line".to_owned(),
                at: At::Whole,
            },
        })
    };
    let inputs = said::read(&args.inputs, false)?.inputs;
    let mut all: Vec<Found> = inputs.into_iter().flat_map(|input| input.found).collect();
    for (name, value) in &args.value {
        all.extend(found(&format!("{}policy", dscp::POLICIES), name, value));
    }
    if let Some(nla) = &args.nla {
        all.extend(found(dscp::SWITCH.0, dscp::SWITCH.1, nla));
    }
    let asked = Asked {
        program: args.program.clone(),
        in_domain: (args.domain || args.workgroup).then_some(args.domain),
    };
    let policies = dscp::judge(&all, &asked);
    if policies.is_empty() {
        let what = "there is no QoS policy in what was given: nothing is marked by one";
        return Err(Failure::Negative(what.to_owned()));
    }
    if json {
        output::json(&policies)?;
        return Ok(());
    }
    let mut out = output::for_people();
    for policy in &policies {
        write(policy, &mut out)?;
        writeln!(out)?;
    }
    output::quiet(
        &mut out,
        "Whether marks leave the machine a capture shows; networks and some adapters clear them.",
    )?;
    out.flush()?;
    Ok(())
}

fn write(policy: &Policy, out: &mut dyn Write) -> io::Result<()> {
    let Policy {
        name,
        mark,
        faults,
        doubts,
    } = policy;
    let does = match (mark, faults.is_empty(), doubts.is_empty()) {
        (Some(mark), true, true) => format!("marks packets with {mark}"),
        (Some(mark), true, false) => format!("marks packets with {mark}, but for doubts"),
        (Some(mark), false, _) => format!("is to mark packets with {mark}, and does not"),
        (None, ..) => "marks nothing".to_owned(),
    };
    output::first_heading(out, &format!("{} {does}", Printable(name)))?;
    for fault in faults {
        output::warning(out, &format!("{fault}."))?;
    }
    for doubt in doubts {
        output::paragraph(out, &format!("Doubt: {doubt}."))?;
    }
    Ok(())
}

fn value(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=TEXT")?;
    Ok((name.trim().to_owned(), typed(value)?))
}

fn typed(text: &str) -> Result<Value, String> {
    match text.strip_prefix("dword:") {
        None => Ok(Value::Text(text.to_owned())),
        Some(number) => number
            .parse()
            .map(Value::Dword)
            .map_err(|_| format!("\"{number}\" is no decimal number of 32 bits")),
    }
}
