//! `laglab tune plan`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use prove::change_plan::{MeasurePlan, Wishes};
use serde::Serialize;
use tune::machine::Machine;
use tune::plan::{Change, Plan, Request};

use super::{MachineOptions, failure, inputs, texts};
use crate::cli::Failure;
use crate::output;

/// Plans changes of settings. It writes files that apply the changes, files that undo them, a check for
/// before and after, and a description with measurements.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune plan SystemResponsiveness=10 --from SOFTWARE --from SYSTEM -o plan\n  \
    laglab tune plan '*RSS@0002=1' MaxNumRssCpus=absent --from SYSTEM -o plan\n  \
    laglab tune plan '*RssBaseProcNumber@Ethernet=4' --from rss.txt -o plan    (Get-NetAdapterRss)\n  \
    laglab tune plan procmin@ac=100 --from power.txt -o plan                   (powercfg /qh)\n  \
    laglab tune plan bfe=4 --from SYSTEM --accept-risk bfe -o plan\n\n\
    The command writes apply.reg and undo.reg, apply.ps1, undo.ps1 and check.ps1, and plan.md. Read plan.md first. \
    The command changes no setting: laglab tune apply does. measure.toml lists what to measure before and after \
    the change; laglab prove verdict compares it and shows whether the change helped.\n\n\
    Exit codes: 0 the plan is written, 2 wrong usage, unreadable input, or a change that cannot be undone \
    or lowers protection.")]
pub(super) struct Args {
    /// NAME=VALUE; NAME@PART=VALUE for one of several parts (an adapter, a policy, ac or dc of a power
    /// scheme); NAME=absent to remove the value
    #[arg(required = true, value_name = "CHANGE")]
    changes: Vec<Request>,
    /// Files and folders with the current values, of the same kinds as for `laglab tune audit`
    #[arg(long, value_name = "INPUT", required_unless_present = "live")]
    from: Vec<PathBuf>,
    /// Read the current values from the registry of this machine (Windows)
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    machine: MachineOptions,
    /// Plan the change of this setting even if it lowers protection
    #[arg(long, value_name = "NAME")]
    accept_risk: Vec<String>,
    /// Program or module whose times in the traces are compared [default: all]
    #[arg(long, value_name = "NAME", help_heading = "Measurements")]
    row: Option<String>,
    /// For measurements with packets: machine that runs `laglab measure net --role reflector`
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Measurements")]
    reflector: Option<String>,
    /// For measurements of file reads: folder with the files to read, for example on a share
    #[arg(long, value_name = "DIR", help_heading = "Measurements")]
    folder: Option<String>,
    /// Folder for the plan; created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let inputs = inputs::read(&args.from, args.live)?;
    let machine = inputs.machine(args.machine.machine());
    let plan = Plan::new(&args.changes, &inputs.inputs, &machine, &args.accept_risk);
    let plan = plan.map_err(|error| failure(&error))?;
    let mut contents = plan.files().map_err(|error| failure(&error))?;
    let measure = MeasurePlan::of_changes(
        &plan,
        &Wishes {
            row: args.row.clone(),
            reflector: args.reflector.clone(),
            folder: args.folder.clone(),
        },
    );
    contents.push((prove::change_plan::FILE, measure.to_text().into_bytes()));
    let folder = &args.output;
    // A plan in this folder may have been applied, so its undo file is not overwritten.
    if folder.join(tune::plan::UNDO).exists() {
        return Err(Failure::input(
            folder,
            "the folder has a plan already; give another folder",
        ));
    }
    // The commands in measure.toml write into these folders.
    for side in ["before", "after"] {
        let side = folder.join(side);
        fs::create_dir_all(&side).map_err(|error| Failure::writing(&side, &error))?;
    }
    let mut files = Vec::new();
    for (name, bytes) in contents {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::writing(&path, &error))?;
        files.push(path.display().to_string());
    }
    let report = Report {
        machine: &plan.machine,
        changes: plan.changes.iter().map(ChangeJson::new).collect(),
        measure: &measure,
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

/// JSON output of `laglab tune plan`. Programs rely on its fields.
#[derive(Serialize)]
struct Report<'a> {
    machine: &'a Machine,
    changes: Vec<ChangeJson>,
    /// Measurements before and after the changes, as in measure.toml.
    measure: &'a MeasurePlan,
    files: Vec<String>,
}

#[derive(Serialize)]
struct ChangeJson {
    setting: &'static str,
    name: &'static str,
    place: String,
    from: String,
    to: String,
    /// True if the setting already has the new value.
    is_done: bool,
    takes_effect: Vec<String>,
    needs_reboot: bool,
    lowers_protection: Option<String>,
    /// True if the machine's build of Windows supports the setting; `null` if unknown.
    has_effect: Option<bool>,
}

impl ChangeJson {
    fn new(change: &Change) -> Self {
        let setting = change.setting;
        ChangeJson {
            setting: &setting.id,
            name: &setting.name,
            place: change.place.to_string(),
            from: texts::value(change.from.as_ref()),
            to: texts::value(change.to.as_ref()),
            is_done: change.is_done(),
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

impl Report<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::first_heading(out, "Plan")?;
        output::paragraph(out, &texts::machine(self.machine))?;
        for change in &self.changes {
            output::heading(out, change.name)?;
            if change.is_done {
                output::warning(out, &format!("already {}: nothing changes", change.to))?
            } else {
                output::paragraph(out, &format!("{} becomes {}", change.from, change.to))?;
            }
            output::quiet(out, &change.place)?;
            output::quiet(
                out,
                &format!("takes effect: {}", change.takes_effect.join(", or ")),
            )?;
            if let Some(risk) = &change.lowers_protection {
                output::warning(out, &format!("lowers protection: {risk}"))?;
            }
            if change.has_effect == Some(false) {
                output::warning(
                    out,
                    "no effect here: this build of Windows does not support the setting",
                )?;
            }
        }
        output::heading(out, "Measure before and after")?;
        for of in &self.measure.measurements {
            output::verbatim(out, &of.before)?;
        }
        for of in &self.measure.recordings {
            let what = format!(
                "{}, then record {} traces of {} s as {}",
                of.kit, of.traces, of.seconds, of.before
            );
            output::paragraph(out, &what)?;
        }
        for of in &self.measure.not_shown {
            output::warning(out, &format!("{}: {}", of.setting, of.why))?;
        }
        output::heading(out, "Files")?;
        for file in &self.files {
            output::paragraph(out, file)?;
        }
        output::quiet(out, "Read plan.md first. No setting was changed.")
    }
}
