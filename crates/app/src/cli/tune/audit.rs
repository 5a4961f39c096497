//! `laglab tune audit`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use maud::{Markup, html};
use serde::Serialize;
use tune::audit::{Audit, Finding};
use tune::found::{Found, Place};
use tune::registry::Value;

use super::{MachineOptions, described, said};
use crate::cli::{Failure, NewFile};
use crate::html_report::still_page;
use crate::output::{self, Printable};

/// Judges what is set on a machine: what is in effect, what does nothing, what is wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune audit SYSTEM SOFTWARE NTUSER.DAT BCD\n  \
    laglab tune audit settings.reg tcp.txt rss.json --build 22631 --edition pro\n  \
    laglab tune audit 'Windows 11 v24H2 Security Baseline.zip' --build 26100 --edition enterprise\n  \
    laglab tune audit --live --html audit.html                            (Windows)\n\n\
    Inputs: .reg exports, hives (SYSTEM, SOFTWARE, NTUSER.DAT, BCD), registry.pol, LGPO text, security\n\
    templates, .PolicyRules, backups of group policies and baselines (folder, zip, cab), ADMX with ADML,\n\
    and what these print: bcdedit /enum, netsh int tcp show global, powercfg /query and /energy,\n\
    Get-NetAdapterRss, Get-NetAdapterAdvancedProperty, Get-NetTCPSetting, Get-SmbServerConfiguration,\n\
    Get-SmbClientConfiguration (as text or ConvertTo-Json), WinDbg, LatencyMon. A trace (.etl) tells the\n\
    build. Where several say something of one place, the last one counts.\n\n\
    Exit codes: 0 nothing is wrong, 1 something is (never because of what is of low confidence), 2 wrong\n\
    usage or unreadable input.")]
pub(super) struct Args {
    /// Files and folders that say how the machine is set
    #[arg(required_unless_present = "live", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Windows: the registry of this machine too
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    machine: MachineOptions,
    /// Write the audit as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let said = said::read(&args.inputs, args.live)?;
    let audit = tune::audit::audit(&said.inputs, &said.machine(args.machine.machine()));
    let policies: HashMap<String, &str> = (said.inputs.iter())
        .flat_map(|input| &input.policy_names)
        // Of several that write a value the first names it.
        .rev()
        .map(|policy| {
            let place = Place::Registry {
                key: policy.key.clone(),
                name: policy.name.clone(),
            };
            (place.to_string().to_lowercase(), policy.policy.as_str())
        })
        .collect();
    let policy = |found: &Found| {
        let named = policies.get(&found.place.to_string().to_lowercase());
        named.map(|policy| (*policy).to_owned())
    };
    let report = Report::new(&audit, &policy);
    if let Some(path) = &args.html {
        let file = NewFile::create(path)?;
        file.file().write_all(page(&report).as_bytes())?;
        file.finish()?;
    }
    if json {
        output::json(&report)?;
    } else {
        let mut out = output::for_people();
        report.write(&mut out)?;
        out.flush()?;
    }
    match report.failing {
        0 => Ok(()),
        1 => Err(Failure::Negative("one setting is wrong".to_owned())),
        failing => Err(Failure::Negative(format!("{failing} settings are wrong"))),
    }
}

/// An audit, in its stable shape for programs.
#[derive(Serialize)]
struct Report {
    machine: described::Machine,
    /// How many findings fail the machine.
    failing: usize,
    findings: Vec<Told>,
    /// How many values that were read are no known setting's.
    others: usize,
}

#[derive(Serialize)]
struct Told {
    setting: &'static str,
    name: &'static str,
    place: String,
    origin: String,
    policy: Option<String>,
    /// What is there; `null` if the input says that nothing is.
    found: Option<String>,
    /// The type it has there.
    found_as: Option<&'static str>,
    /// What it stands for.
    value: Option<String>,
    defaults: Vec<String>,
    differs: Option<bool>,
    fails: bool,
    confidence: String,
    remarks: Vec<Said>,
    takes_effect: Vec<String>,
    needs_reboot: bool,
    evidence: Option<&'static str>,
    read_with: Option<&'static str>,
    set_before: Vec<String>,
    sources: &'static [String],
}

#[derive(Serialize)]
struct Said {
    kind: &'static str,
    #[serde(skip)]
    label: String,
    says: String,
}

impl Report {
    fn new(audit: &Audit, policy: &dyn Fn(&Found) -> Option<String>) -> Report {
        Report {
            machine: described::Machine::new(&audit.machine),
            failing: audit
                .findings
                .iter()
                .filter(|finding| finding.fails())
                .count(),
            findings: (audit.findings.iter())
                .map(|finding| Told::new(finding, policy))
                .collect(),
            others: audit.others,
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::first_heading(out, "Machine")?;
        output::paragraph(out, &self.machine.sentence())?;
        let (said, quiet): (Vec<&Told>, Vec<&Told>) = (self.findings.iter())
            .partition(|told| !told.remarks.is_empty() || told.differs != Some(false));
        for told in &said {
            output::heading(out, &told.title())?;
            told.write(out)?;
        }
        output::heading(out, "In all")?;
        output::paragraph(out, &self.summary(said.len(), quiet.len()))?;
        Ok(())
    }

    fn summary(&self, said: usize, at_default: usize) -> String {
        format!(
            "{} wrong, {} more to know of, {at_default} as by default; {} values are of no known setting. \
             What is of low confidence is shown and makes nothing wrong.",
            self.failing,
            said - self.failing.min(said),
            self.others
        )
    }
}

impl Told {
    fn new(finding: &Finding, policy: &dyn Fn(&Found) -> Option<String>) -> Told {
        let setting = finding.setting;
        let found = &finding.found;
        Told {
            setting: &setting.id,
            name: &setting.name,
            place: found.place.to_string(),
            origin: found.origin.to_string(),
            policy: policy(found),
            found: found.value.as_ref().map(Value::to_string),
            found_as: found.value.as_ref().map(Value::type_name),
            value: finding.value.as_ref().map(ToString::to_string),
            defaults: (finding.defaults.iter())
                .map(|rule| described::default_rule(rule))
                .collect(),
            differs: finding.differs,
            fails: finding.fails(),
            confidence: finding.confidence.to_string(),
            remarks: (finding.remarks.iter())
                .map(|remark| Said {
                    kind: remark.kind.word(),
                    label: remark.kind.to_string(),
                    says: remark.says.clone(),
                })
                .collect(),
            takes_effect: setting
                .takes_effect
                .iter()
                .map(ToString::to_string)
                .collect(),
            needs_reboot: setting.needs_reboot(),
            evidence: setting.evidence.as_deref(),
            read_with: setting.read_with.as_deref(),
            set_before: finding
                .before
                .iter()
                .map(|found| found.origin.to_string())
                .collect(),
            sources: &setting.sources,
        }
    }

    fn title(&self) -> String {
        let wrong = if self.fails { "WRONG: " } else { "" };
        format!("{wrong}{}", self.name)
    }

    /// What is set, and what is by default.
    fn sentence(&self) -> String {
        let found = match (&self.value, &self.found, self.found_as) {
            (Some(value), ..) => value.clone(),
            (None, Some(found), Some(kind)) => format!("{found} ({kind})"),
            (None, ..) => "not set".to_owned(),
        };
        let default = match self.defaults.as_slice() {
            [] => "default unknown".to_owned(),
            defaults => format!("default: {}", defaults.join("; or ")),
        };
        let standing = match self.differs {
            Some(true) => "differs",
            Some(false) => "as by default",
            None => "not compared",
        };
        format!("{found} ({default}; {standing})")
    }

    /// What else is to be known.
    fn circumstances(&self) -> Vec<String> {
        let mut lines = vec![format!("{} ({})", self.place, self.origin)];
        let mut add = |label: &str, text: Option<String>| {
            lines.extend(text.map(|text| format!("{label}: {text}")));
        };
        add("policy", self.policy.clone());
        add(
            "set before by",
            (!self.set_before.is_empty()).then(|| self.set_before.join(", ")),
        );
        add(
            "a change takes effect",
            Some(self.takes_effect.join(", or ")),
        );
        add("would show in", self.evidence.map(str::to_owned));
        add("what is in effect tells", self.read_with.map(str::to_owned));
        add("confidence", Some(self.confidence.clone()));
        lines
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::paragraph(out, &self.sentence())?;
        for remark in &self.remarks {
            let text = format!("{}: {}", remark.label, remark.says);
            match self.fails {
                true => output::warning(out, &text)?,
                false => output::paragraph(out, &text)?,
            }
        }
        for line in self.circumstances() {
            output::quiet(out, &line)?;
        }
        Ok(())
    }
}

/// Paths and addresses are long words: they break, so that the table is no wider than the window.
const TABLE: &str = "td small { overflow-wrap: anywhere } td:first-child { width: 28% }";

/// The audit as a page that needs nothing else; no script may run in it.
fn page(report: &Report) -> String {
    let rows = |told: &Told| -> Markup {
        html! {
            tr {
                td { (Printable(&told.title())) br; small { (Printable(&told.place)) } }
                td { (Printable(&told.sentence())) }
                td {
                    @for remark in &told.remarks {
                        p.warning[told.fails] { (Printable(&remark.label)) ": " (Printable(&remark.says)) }
                    }
                }
                td {
                    @for line in told.circumstances().iter().skip(1) { small { (Printable(line)) br; } }
                    small { (Printable(&told.origin)) br; }
                    @for source in told.sources { small { a href=(source) { (Printable(source)) } br; } }
                }
            }
        }
    };
    let at_default = |told: &&Told| told.remarks.is_empty() && told.differs == Some(false);
    let quiet = report.findings.iter().filter(at_default).count();
    let said = report.findings.len() - quiet;
    const TITLE: &str = "laglab tune audit";
    let header = html! {
        p.what { "How this machine is set" }
        h1 { (TITLE) }
        p { (Printable(&report.machine.sentence())) }
    };
    let main = html! {
        section {
            h2 { "Settings" }
            p { (report.summary(said, quiet)) }
            table {
                thead { tr {
                    th scope="col" { "Setting" } th scope="col" { "Value" }
                    th scope="col" { "What is to be said" } th scope="col" { "Circumstances" }
                } }
                tbody { @for told in &report.findings { (rows(told)) } }
            }
        }
    };
    still_page(TITLE, TABLE, &header, &main)
}
