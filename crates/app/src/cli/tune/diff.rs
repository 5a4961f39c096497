//! `laglab tune diff`.

use std::io::{self, Write};
use std::path::PathBuf;

use registry::Value;
use serde::Serialize;
use tune::diff::{Diff, Difference, Side};
use tune::machine::Machine;

use super::{MachineOptions, inputs, texts};
use crate::cli::Failure;
use crate::output::{self, Columns, counted};

/// Compares the effective settings of two machines, or of one machine at two moments. The most important
/// differences come first.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune diff good/ bad/\n  \
    laglab tune diff before.reg after.reg --build 22631 --edition pro\n\n\
    Each side is a file, or a folder of exports, policies and baselines. The command compares the effect of \
    values, and uses the default if a value is not set.\n\n\
    Exit codes: 0 no known setting differs, 1 some do, 2 wrong usage or unreadable input.")]
pub(super) struct Args {
    /// First machine
    a: PathBuf,
    /// Second machine
    b: PathBuf,
    #[command(flatten)]
    machine: MachineOptions,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let a = inputs::read(std::slice::from_ref(&args.a), false)?;
    let b = inputs::read(std::slice::from_ref(&args.b), false)?;
    let diff = tune::diff::diff(&a.inputs, &b.inputs, &args.machine.machine());
    let report = Report::new(&diff);
    if json {
        output::json(&report)?;
    } else {
        let mut out = output::for_people();
        report.write(&mut out)?;
        out.flush()?;
    }
    match report.differing {
        0 => Ok(()),
        differing => Err(Failure::Negative(counted(
            differing as u64,
            "setting differs",
            "settings differ",
        ))),
    }
}

/// JSON output of `laglab tune diff`. Programs rely on its fields.
#[derive(Serialize)]
struct Report<'a> {
    a: &'a Machine,
    b: &'a Machine,
    /// Number of settings that certainly differ.
    differing: usize,
    settings: Vec<DifferenceJson>,
    same: usize,
    /// Number of differing values that belong to no known setting.
    others: usize,
}

#[derive(Serialize)]
struct DifferenceJson {
    setting: &'static str,
    name: &'static str,
    place: String,
    a: SideJson,
    b: SideJson,
    /// True if the effective values differ; `null` if unknown.
    differs: Option<bool>,
    about_security: bool,
}

#[derive(Serialize)]
struct SideJson {
    found: String,
    effective: Option<String>,
    /// Text for the table: the stored value, and the effective value if it is different.
    #[serde(skip)]
    cell: String,
}

impl SideJson {
    fn new(side: &Side) -> Self {
        SideJson {
            cell: cell(side),
            found: texts::state(&side.state),
            effective: side.effective.as_ref().map(ToString::to_string),
        }
    }
}

/// Formats the stored value. If the effective value is different, adds the effective value.
fn cell(side: &Side) -> String {
    let text = texts::state(&side.state);
    let number = side.state.value().and_then(Value::number);
    match &side.effective {
        // If both numbers are equal, the text of the effective value is enough. It has the number in decimal and
        // hexadecimal.
        Some(effective) if number.is_some() && number == effective.number() => {
            effective.to_string()
        }
        Some(effective) if effective.to_string() != text => format!("{text} = {effective}"),
        _ => text,
    }
}

impl<'a> Report<'a> {
    fn new(diff: &'a Diff) -> Self {
        let convert = |difference: &Difference| DifferenceJson {
            setting: &difference.setting.id,
            name: &difference.setting.name,
            place: difference.place.to_string(),
            a: SideJson::new(&difference.a),
            b: SideJson::new(&difference.b),
            differs: difference.differs,
            about_security: difference.about_security,
        };
        let settings: Vec<DifferenceJson> = diff.differences.iter().map(convert).collect();
        Report {
            a: &diff.a,
            b: &diff.b,
            differing: settings
                .iter()
                .filter(|setting| setting.differs == Some(true))
                .count(),
            settings,
            same: diff.same,
            others: diff.others,
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::first_heading(out, "Machines")?;
        output::paragraph(out, &format!("A: {}", texts::machine(self.a)))?;
        output::paragraph(out, &format!("B: {}", texts::machine(self.b)))?;
        for (heading, wanted) in [
            ("Different", Some(true)),
            ("Unknown: one side has no value", None),
        ] {
            let settings: Vec<&DifferenceJson> = (self.settings.iter())
                .filter(|setting| setting.differs == wanted)
                .collect();
            if settings.is_empty() {
                continue;
            }
            output::heading(out, heading)?;
            let mut columns = Columns::new(&[output::Side::Left; 4]);
            columns.row(["setting", "A", "B", "where"]);
            for setting in settings {
                let security = if setting.about_security {
                    " (security)"
                } else {
                    ""
                };
                columns.row([
                    format!("{}{security}", setting.name),
                    setting.a.cell.clone(),
                    setting.b.cell.clone(),
                    setting.place.clone(),
                ]);
            }
            columns.write(out)?;
        }
        output::heading(out, "Summary")?;
        output::paragraph(
            out,
            &format!(
                "{}, {} equal; {} without a known setting.",
                counted(self.differing as u64, "setting differs", "settings differ"),
                counted(self.same as u64, "is", "are"),
                counted(
                    self.others as u64,
                    "other value differs",
                    "other values differ"
                )
            ),
        )
    }
}
