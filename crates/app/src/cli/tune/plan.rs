//! `laglab tune plan`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use tune::plan::{Change, Plan, PlanError, Request};

use super::{MachineOptions, described, said};
use crate::cli::Failure;
use crate::output;

/// Plans changes: what to apply, the exact undo from the values found, checks before and after, what to
/// measure.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune plan SystemResponsiveness=10 --from SOFTWARE --from SYSTEM -o plan\n  \
    laglab tune plan '*RSS@0002=1' MaxNumRssCpus=absent --from SYSTEM -o plan\n  \
    laglab tune plan '*RssBaseProcNumber@Ethernet=4' --from rss.txt -o plan    (Get-NetAdapterRss)\n  \
    laglab tune plan procmin@ac=100 --from power.txt -o plan                   (powercfg /qh)\n  \
    laglab tune plan bfe=4 --from SYSTEM --accept-risk bfe -o plan\n\n\
    Written are apply.reg and undo.reg, apply.ps1, undo.ps1 and check.ps1, and plan.md to be read first.\n\
    Nothing on a machine is changed: laglab tune apply does that.\n\n\
    Exit codes: 0 the plan is written, 2 wrong usage, unreadable input, or a change that cannot be undone\n\
    or lowers protection.")]
pub(super) struct Args {
    /// NAME=VALUE, NAME@PART=VALUE for one of several (an adapter, a policy, ac or dc of a power scheme),
    /// NAME=absent to remove the value
    #[arg(required = true, value_name = "CHANGE")]
    changes: Vec<Request>,
    /// What says what is there now: files and folders as for audit
    #[arg(long, value_name = "INPUT", required_unless_present = "live")]
    from: Vec<PathBuf>,
    /// Windows: the registry of this machine says it
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    machine: MachineOptions,
    /// Plan a change to this setting though it lowers protection
    #[arg(long, value_name = "NAME")]
    accept_risk: Vec<String>,
    /// The folder to write the plan to; made if it is not there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let said = said::read(&args.from, args.live)?;
    let machine = said.machine(args.machine.machine());
    let plan = Plan::new(&args.changes, &said.inputs, &machine, &args.accept_risk)
        .map_err(|error: PlanError| Failure::Input(error.to_string()))?;
    let folder = &args.output;
    // A plan that is there may have been carried out: its undo must not be lost.
    if folder.join(tune::plan::UNDO).exists() {
        return Err(Failure::input(
            folder,
            "holds a plan already; give another folder",
        ));
    }
    fs::create_dir_all(folder).map_err(|error| Failure::input(folder, error))?;
    let mut files = Vec::new();
    for (name, bytes) in plan.files() {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::input(&path, error))?;
        files.push(path.display().to_string());
    }
    let report = Report {
        machine: described::Machine::new(&plan.machine),
        changes: plan.changes.iter().map(Told::new).collect(),
        files,
    };
    if json {
        output::json(&report)?;
        return Ok(());
    }
    let mut out = output::for_people();
    report.write(&mut out)?;
    out.flush()?;
    Ok(())
}

/// A plan, in its stable shape for programs.
#[derive(Serialize)]
struct Report {
    machine: described::Machine,
    changes: Vec<Told>,
    files: Vec<String>,
}

#[derive(Serialize)]
struct Told {
    setting: &'static str,
    name: &'static str,
    place: String,
    from: String,
    to: String,
    takes_effect: Vec<String>,
    needs_reboot: bool,
    lowers_protection: Option<String>,
    /// Whether this build knows the setting; `null` if that is open.
    has_effect: Option<bool>,
}

impl Told {
    fn new(change: &Change) -> Told {
        let setting = change.setting;
        Told {
            setting: &setting.id,
            name: &setting.name,
            place: change.place.to_string(),
            from: described::value(change.from.as_ref()),
            to: described::value(change.to.as_ref()),
            takes_effect: setting
                .takes_effect
                .iter()
                .map(ToString::to_string)
                .collect(),
            needs_reboot: setting.needs_reboot(),
            lowers_protection: change.lowers.clone(),
            has_effect: change.has_effect,
        }
    }
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::first_heading(out, "Plan")?;
        output::paragraph(out, &self.machine.sentence())?;
        for told in &self.changes {
            output::heading(out, told.name)?;
            output::paragraph(out, &format!("{} becomes {}", told.from, told.to))?;
            output::quiet(out, &told.place)?;
            output::quiet(
                out,
                &format!("takes effect: {}", told.takes_effect.join(", or ")),
            )?;
            if let Some(risk) = &told.lowers_protection {
                output::warning(out, &format!("lowers protection: {risk}"))?;
            }
            if told.has_effect == Some(false) {
                output::warning(
                    out,
                    "does nothing here: Windows of this build does not know it",
                )?;
            }
        }
        output::heading(out, "Written")?;
        for file in &self.files {
            output::paragraph(out, file)?;
        }
        output::quiet(out, "Read plan.md first. Nothing on a machine was changed.")
    }
}
