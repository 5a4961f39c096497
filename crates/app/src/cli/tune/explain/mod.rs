//! `laglab tune explain`: explains a setting of the catalogue, or a topic with several settings. Each topic
//! has its own source file.

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

use super::MachineOptions;
use crate::cli::Failure;
use crate::output::{self, Columns, Side};

/// Explains a setting: effect, default, and the meaning of a value. Without a name it lists all settings.
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
    /// Name of the setting or of its registry value, or id of the setting
    name: Option<String>,
    /// Value: decimal, hexadecimal with 0x, or a word
    #[arg(requires = "name")]
    value: Option<String>,
    #[command(flatten)]
    machine: MachineOptions,
    /// Print a table of values of Win32PrioritySeparation, which is the default setting here: one value for each
    /// effect, and the quantum of foreground and background threads
    #[arg(long, conflicts_with = "value")]
    table: bool,
    /// Decode output of a debugger instead of a value. Give PsPrioritySeparation and the three bytes of
    /// PspForegroundQuantum, such as 2:060c12. Only for Win32PrioritySeparation
    #[arg(long, value_name = "N:BYTES", conflicts_with_all = ["value", "table"])]
    kernel: Option<quantum::Readout>,
}

#[derive(Subcommand)]
enum Topic {
    /// Duration of Sleep(1) for given timer requests
    Sleep(sleep::Args),
    /// Processors that serve an adapter or a flow; a plan for several adapters
    Rss(Box<rss::Args>),
    /// Signing and encryption of SMB sessions, and the cost
    Smb(smb::Args),
    /// Reasons why a QoS policy does not mark packets
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
        let names = catalogue.settings().iter().flat_map(Setting::names);
        return Err(Failure::Input(format!(
            "unknown setting {name}; similar names: {} (laglab tune explain lists all settings)",
            wording::closest(name, names, 5).join(", ")
        )));
    }
    let is_quantum = |setting: &&Setting| setting.id == quantum::ID;
    if args.table || args.kernel.is_some() {
        if !settings.iter().any(is_quantum) {
            return Err(Failure::Input(format!(
                "--table and --kernel need Win32PrioritySeparation, not {name}"
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

/// Setting in the JSON output of the list. Programs rely on its fields.
#[derive(Serialize)]
struct SettingJson<'c> {
    group: &'c str,
    id: &'c str,
    name: &'c str,
    meaning: &'c str,
}

fn list(json: bool) -> Result<(), Failure> {
    let catalogue = Catalogue::get();
    if json {
        let listed = catalogue.settings().iter().map(|setting| SettingJson {
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
    output::heading(&mut out, "Topics")?;
    let mut columns = Columns::new(&[Side::Left, Side::Left]);
    for (topic, about) in [
        ("sleep", "duration of Sleep(1)"),
        ("rss", "processors that serve a network adapter"),
        ("smb", "signing and encryption of SMB sessions"),
        ("dscp", "reasons why a QoS policy does not mark packets"),
    ] {
        columns.row([topic, about]);
    }
    columns.write(&mut out)?;
    out.flush()?;
    Ok(())
}
