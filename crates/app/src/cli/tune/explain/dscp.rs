//! Reasons why a QoS policy does not mark packets.

use std::io::{self, Write};
use std::path::PathBuf;

use registry::{Key, Value};
use tune::audit;
use tune::decode::dscp::{self, Policy, Scope};
use tune::machine::{Edition, Machine};
use tune::placed_value::{InputPosition, Origin, Place, PlacedValue};

use crate::cli::Failure;
use crate::cli::tune::inputs;
use crate::output::{self, Printable};

/// Checks whether QoS policies mark the packets of a program on a machine.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune explain dscp settings.reg --program game.exe --workgroup\n  \
    laglab tune explain dscp --value 'DSCP Value=46' --value 'Application Name=game.exe' --workgroup \
    --edition pro\n  \
    laglab tune explain dscp --value 'DSCP Value=dword:46'")]
pub(super) struct Args {
    /// Files with policies: .reg exports, hives and all other inputs of `laglab tune audit`
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Value of a policy, as NAME=TEXT, or NAME=dword:NUMBER for a REG_DWORD
    #[arg(
        long,
        value_name = "NAME=TEXT",
        required_unless_present = "inputs",
        conflicts_with = "inputs",
        value_parser = value
    )]
    value: Vec<(String, Value)>,
    /// File name or path of the program whose packets are to be marked
    #[arg(long, value_name = "EXE")]
    program: Option<String>,
    /// The machine is in a domain
    #[arg(long, conflicts_with = "workgroup")]
    domain: bool,
    /// The machine is in a workgroup
    #[arg(long)]
    workgroup: bool,
    /// Edition: home, pro (or client), enterprise, server, domain-controller (or dc) [default: from the
    /// inputs]
    #[arg(long, value_name = "EDITION")]
    edition: Option<Edition>,
    /// Registry value "Do not use NLA", as TEXT or dword:NUMBER
    #[arg(long, value_name = "TEXT", value_parser = typed)]
    nla: Option<Value>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let entry = |key: &str, name: &str, value: &Value| {
        Key::new(key).map(|key| PlacedValue {
            place: Place::Registry {
                key,
                name: name.to_owned(),
            },
            value: Some(value.clone()),
            origin: Origin {
                source: "the command line".into(),
                at: InputPosition::Whole,
            },
        })
    };
    let inputs = inputs::read(&args.inputs, false)?.inputs;
    let machine = Machine {
        edition: args.edition,
        ..Machine::default()
    };
    let edition = audit::machine(&inputs, &machine).edition;
    let mut all: Vec<PlacedValue> = inputs.into_iter().flat_map(|input| input.found).collect();
    for (name, value) in &args.value {
        all.extend(entry(&format!("{}policy", dscp::POLICIES), name, value));
    }
    if let Some(nla) = &args.nla {
        all.extend(entry(dscp::SWITCH.0, dscp::SWITCH.1, nla));
    }
    let scope = Scope {
        program: args.program.clone(),
        in_domain: (args.domain || args.workgroup).then_some(args.domain),
        edition,
    };
    let policies = dscp::judge(&all, &scope);
    if policies.is_empty() {
        let what = "the inputs have no QoS policy, so no packets are marked";
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
        "A packet capture shows whether marks leave the machine. Networks and some adapters clear them.",
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
        (Some(mark), true, false) => format!("may mark packets with {mark}"),
        (Some(mark), false, _) => format!("should mark packets with {mark}, but does not"),
        (None, ..) => "marks no packets".to_owned(),
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
            .map_err(|_| format!("\"{number}\" is not a decimal number of 32 bits")),
    }
}
