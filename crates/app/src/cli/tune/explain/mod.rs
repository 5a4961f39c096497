//! `laglab tune explain`: a setting of the catalogue, or one of the topics that several settings make
//! up, a file each.

mod dscp;
mod quantum;
mod rss;
mod setting;
mod sleep;
mod smb;

use std::io::Write;

use clap::Subcommand;
use serde::Serialize;
use tune::catalogue::{Catalogue, Setting};

use super::{MachineOptions, nearest};
use crate::cli::Failure;
use crate::output::{self, Columns, Side};

/// Says what a setting does, what it is by default and what a value of it stands for; without a name
/// it lists all settings.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    laglab tune explain\n  \
    laglab tune explain Win32PrioritySeparation 0x26 --build 22631 --edition client\n  \
    laglab tune explain Win32PrioritySeparation --table\n  \
    laglab tune explain RequireSecuritySignature --build 26100 --edition server\n  \
    laglab tune explain sleep --other 0.5 --build 19044\n  \
    laglab tune explain rss --processors 24 --threads 2 --nodes 2 --node 0 --build 7601\n  \
    laglab tune explain smb --client 26100:pro --server 17763:server\n  \
    laglab tune explain dscp --value 'DSCP Value=46' --value 'Application Name=game.exe' --workgroup"
)]
pub(super) struct Args {
    #[command(subcommand)]
    topic: Option<Topic>,
    /// The setting: its name, the name of its value, or its id
    name: Option<String>,
    /// A value of it, in decimal, in hexadecimal with 0x, or a word
    #[arg(requires = "name")]
    value: Option<String>,
    #[command(flatten)]
    machine: MachineOptions,
    /// What all values stand for that differ (Win32PrioritySeparation, which needs not be named)
    #[arg(long, conflicts_with = "value")]
    table: bool,
    /// What a debugger shows of the kernel instead of a value: PsPrioritySeparation and the three
    /// bytes of PspForegroundQuantum, such as 2:060c12 (Win32PrioritySeparation)
    #[arg(long, value_name = "N:BYTES", conflicts_with_all = ["value", "table"])]
    kernel: Option<quantum::Readout>,
}

#[derive(Subcommand)]
enum Topic {
    /// What Sleep(1) becomes, by who asked for which timer resolution
    Sleep(sleep::Args),
    /// Which processors serve an adapter, why no more, which one a flow gets; a plan for several
    Rss(Box<rss::Args>),
    /// What two machines do to their SMB sessions: sign, encrypt, with what, at what cost
    Smb(smb::Args),
    /// Why a QoS policy would not mark packets
    Dscp(dscp::Args),
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let Some(topic) = &args.topic else {
        return match &args.name {
            Some(name) => explain(args, name, json),
            None if args.table || args.kernel.is_some() => explain(args, quantum::ID, json),
            None => list(json),
        };
    };
    match topic {
        Topic::Sleep(args) => sleep::run(args, json),
        Topic::Rss(args) => rss::run(args, json),
        Topic::Smb(args) => smb::run(args, json),
        Topic::Dscp(args) => dscp::run(args, json),
    }
}

fn explain(args: &Args, name: &str, json: bool) -> Result<(), Failure> {
    let catalogue = Catalogue::get();
    let settings = catalogue.named(name);
    if settings.is_empty() {
        let words = catalogue.settings().iter().flat_map(Setting::words);
        return Err(Failure::Input(format!(
            "no setting is called {name}; the nearest are {} (laglab tune explain lists all)",
            nearest(words, name).join(", ")
        )));
    }
    let is_quantum = |setting: &&Setting| setting.id == quantum::ID;
    if args.table || args.kernel.is_some() {
        if !settings.iter().any(is_quantum) {
            return Err(Failure::Input(format!(
                "--table and --kernel are for Win32PrioritySeparation, not for {name}"
            )));
        }
        return match args.kernel {
            Some(readout) => quantum::explain_readout(readout, json),
            None => quantum::table(json),
        };
    }
    setting::explain(
        &settings,
        args.value.as_deref(),
        &args.machine.machine(),
        json,
    )
}

/// A line of the list, in its stable shape for programs.
#[derive(Serialize)]
struct Listed<'c> {
    group: &'c str,
    id: &'c str,
    name: &'c str,
    meaning: &'c str,
}

fn list(json: bool) -> Result<(), Failure> {
    let catalogue = Catalogue::get();
    if json {
        let listed = catalogue.settings().iter().map(|setting| Listed {
            group: setting.group,
            id: &setting.id,
            name: &setting.name,
            meaning: &setting.meaning,
        });
        output::json(&listed.collect::<Vec<_>>())?;
        return Ok(());
    }
    let mut out = output::for_people();
    for (number, group) in catalogue.groups().iter().enumerate() {
        match number {
            0 => output::first_heading(&mut out, &group.title)?,
            _ => output::heading(&mut out, &group.title)?,
        }
        let mut columns = Columns::new(&[Side::Left, Side::Left]);
        for setting in catalogue.settings() {
            if setting.group == group.name {
                columns.row([setting.id.as_str(), &setting.name]);
            }
        }
        columns.write(&mut out)?;
    }
    output::heading(&mut out, "Settings together")?;
    let mut columns = Columns::new(&[Side::Left, Side::Left]);
    for (topic, about) in [
        ("sleep", "what Sleep(1) becomes"),
        ("rss", "which processors serve a network adapter"),
        ("smb", "what two machines do to their sessions"),
        ("dscp", "why a QoS policy would not mark packets"),
    ] {
        columns.row([topic, about]);
    }
    columns.write(&mut out)?;
    out.flush()?;
    Ok(())
}
