//! `laglab tune diff`.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use tune::diff::{Diff, Difference, Side};

use super::{MachineOptions, described, said};
use crate::cli::Failure;
use crate::output::{self, Columns};

/// Compares two machines, or one at two moments: what is in effect here and not there, what matters
/// first.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune diff good/ bad/\n  \
    laglab tune diff before.reg after.reg --build 22631 --edition pro\n\n\
    Each side is a file, or a folder of exports, policies and baselines. Compared is what values stand\n\
    for, and the default where nothing is set.\n\n\
    Exit codes: 0 no known setting differs, 1 some do, 2 wrong usage or unreadable input.")]
pub(super) struct Args {
    /// The one
    a: PathBuf,
    /// The other
    b: PathBuf,
    #[command(flatten)]
    machine: MachineOptions,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let a = said::read(std::slice::from_ref(&args.a), false)?;
    let b = said::read(std::slice::from_ref(&args.b), false)?;
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
        1 => Err(Failure::Negative("one setting differs".to_owned())),
        differing => Err(Failure::Negative(format!("{differing} settings differ"))),
    }
}

/// A comparison, in its stable shape for programs.
#[derive(Serialize)]
struct Report {
    a: described::Machine,
    b: described::Machine,
    /// How many settings differ for certain.
    differing: usize,
    settings: Vec<Told>,
    same: usize,
    /// How many values of no known setting differ.
    others: usize,
}

#[derive(Serialize)]
struct Told {
    setting: &'static str,
    name: &'static str,
    place: String,
    a: OneSide,
    b: OneSide,
    /// `null` where one side does not tell.
    differs: Option<bool>,
    about_security: bool,
}

#[derive(Serialize)]
struct OneSide {
    found: String,
    effective: Option<String>,
}

impl OneSide {
    fn new(side: &Side) -> OneSide {
        OneSide {
            found: described::state(&side.state),
            effective: side.effective.as_ref().map(ToString::to_string),
        }
    }

    /// What is found, and what that stands for if it is not the same.
    fn cell(&self) -> String {
        match &self.effective {
            Some(effective) if *effective != self.found => {
                format!("{} = {effective}", self.found)
            }
            _ => self.found.clone(),
        }
    }
}

impl Report {
    fn new(diff: &Diff) -> Report {
        let told = |difference: &Difference| Told {
            setting: &difference.setting.id,
            name: &difference.setting.name,
            place: difference.place.to_string(),
            a: OneSide::new(&difference.a),
            b: OneSide::new(&difference.b),
            differs: difference.differs,
            about_security: difference.about_security,
        };
        let settings: Vec<Told> = diff.differences.iter().map(told).collect();
        Report {
            a: described::Machine::new(&diff.a),
            b: described::Machine::new(&diff.b),
            differing: settings
                .iter()
                .filter(|told| told.differs == Some(true))
                .count(),
            settings,
            same: diff.same,
            others: diff.others,
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::first_heading(out, "Machines")?;
        output::paragraph(out, &format!("A: {}", self.a.sentence()))?;
        output::paragraph(out, &format!("B: {}", self.b.sentence()))?;
        for (heading, wanted) in [
            ("Differ", Some(true)),
            ("May differ: one side does not tell", None),
        ] {
            let settings: Vec<&Told> = (self.settings.iter())
                .filter(|told| told.differs == wanted)
                .collect();
            if settings.is_empty() {
                continue;
            }
            output::heading(out, heading)?;
            let mut columns = Columns::new(&[output::Side::Left; 4]);
            columns.row(["setting", "A", "B", "where"]);
            for told in settings {
                let security = if told.about_security {
                    " (security)"
                } else {
                    ""
                };
                columns.row([
                    format!("{}{security}", told.name),
                    told.a.cell(),
                    told.b.cell(),
                    told.place.clone(),
                ]);
            }
            columns.write(out)?;
        }
        output::heading(out, "In all")?;
        output::paragraph(
            out,
            &format!(
                "{} settings differ, {} are the same; {} values of no known setting differ.",
                self.differing, self.same, self.others
            ),
        )
    }
}
