//! `laglab tune audit`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use maud::{Markup, html};
use registry::Value;
use report::TextPage;
use serde::Serialize;
use session::NewFile;
use tune::audit::{Audit, Finding, Remark};
use tune::inputs::Input;
use tune::machine::Machine;
use tune::observation::Observation;
use tune::placed_value::{Place, PlacedValue};

use super::{MachineOptions, inputs, texts};
use crate::cli::Failure;
use crate::output::{self, Columns, Printable, Side, counted, grouped};

/// Checks the settings of a machine: values that are wrong, have no effect, or differ from the default.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune audit SYSTEM SOFTWARE NTUSER.DAT BCD\n  \
    laglab tune audit settings.reg tcp.txt rss.json --build 22631 --edition pro\n  \
    laglab tune audit 'Windows 11 v24H2 Security Baseline.zip' --build 26100 --edition enterprise\n  \
    laglab tune audit --live --html audit.html                            (Windows)\n\n\
    Inputs: .reg exports, hives (SYSTEM, SOFTWARE, NTUSER.DAT, BCD), registry.pol, LGPO text, security \
    templates, .PolicyRules, backups of group policies and baselines (folder, zip, cab), ADMX with ADML, \
    and the output of bcdedit /enum, netsh int tcp show global, powercfg /query and /energy, \
    Get-NetAdapterRss, Get-NetAdapterAdvancedProperty, Get-NetTCPSetting, Get-SmbServerConfiguration, \
    Get-SmbClientConfiguration (as text or ConvertTo-Json), WinDbg, LatencyMon. From a trace (.etl), \
    only the build of Windows is read. If several inputs have a value for the same location, the last input counts.\n\n\
    Exit codes: 0 no setting is wrong, 1 some are (never settings of low confidence), 2 wrong usage or \
    unreadable input.")]
pub(super) struct Args {
    /// Files and folders with settings of the machine
    #[arg(required_unless_present = "live", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Also read the registry of this machine (Windows)
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    machine: MachineOptions,
    /// Write the audit as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let inputs = inputs::read(&args.inputs, args.live)?;
    let audit = tune::audit::audit(&inputs.inputs, &inputs.machine(args.machine.machine()));
    let policies: HashMap<Place, &str> = (inputs.inputs.iter())
        .flat_map(|input| &input.policy_names)
        // If several policies write the same value, the first policy counts. The order is reversed, so that
        // the first policy is inserted last and replaces the others.
        .rev()
        .map(|policy| {
            let place = Place::Registry {
                key: policy.key.clone(),
                name: policy.name.clone(),
            };
            (place, policy.policy.as_str())
        })
        .collect();
    let policy = |found: &PlacedValue| {
        let named = policies.get(&found.place);
        named.map(|policy| (*policy).to_owned())
    };
    let report = Report::new(&audit, &inputs.inputs, &policy);
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
        failing => Err(Failure::Negative(counted(
            failing as u64,
            "setting is wrong",
            "settings are wrong",
        ))),
    }
}

/// JSON output of `laglab tune audit`. Programs rely on its fields.
#[derive(Serialize)]
struct Report<'a> {
    machine: &'a Machine,
    /// Number of findings for which the audit fails.
    failing: usize,
    findings: Vec<FindingJson<'a>>,
    /// Values of reports that are not settings.
    observed: Vec<&'a Observation>,
    /// Number of values in the inputs that belong to no known setting.
    others: usize,
}

/// Returns the name, the value and the subject of a value of a report.
fn cells(observed: &Observation) -> [String; 3] {
    let subject = observed.subject.as_ref().map(ToString::to_string);
    [
        observed.name.to_owned(),
        observed.quantity.to_string(),
        subject.unwrap_or_default(),
    ]
}

#[derive(Serialize)]
struct FindingJson<'a> {
    setting: &'static str,
    name: &'static str,
    place: String,
    origin: String,
    policy: Option<String>,
    /// Value as it is stored; `null` if the setting is not set.
    found: Option<String>,
    /// Registry type of the stored value.
    found_as: Option<&'static str>,
    /// Value after conversion to the type of the setting; `null` if it is not set or has the wrong type.
    value: Option<String>,
    defaults: Vec<String>,
    differs: Option<bool>,
    fails: bool,
    confidence: String,
    remarks: &'a [Remark],
    takes_effect: Vec<String>,
    needs_reboot: bool,
    evidence: Option<&'static str>,
    read_with: Option<&'static str>,
    set_before: Vec<String>,
    sources: &'static [String],
}

impl<'a> Report<'a> {
    fn new(
        audit: &'a Audit,
        inputs: &'a [Input],
        policy: &dyn Fn(&PlacedValue) -> Option<String>,
    ) -> Self {
        let observed = inputs.iter().flat_map(|input| &input.observed);
        Report {
            observed: observed.collect(),
            machine: &audit.machine,
            failing: audit
                .findings
                .iter()
                .filter(|finding| finding.fails())
                .count(),
            findings: (audit.findings.iter())
                .map(|finding| FindingJson::new(finding, policy))
                .collect(),
            others: audit.others,
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::first_heading(out, "Machine")?;
        output::paragraph(out, &texts::machine(self.machine))?;
        let (shown, quiet): (Vec<_>, Vec<_>) =
            (self.findings.iter()).partition(|finding| !finding.is_quiet());
        for finding in &shown {
            output::heading(out, &finding.title())?;
            finding.write(out)?;
        }
        if !self.observed.is_empty() {
            output::heading(out, OBSERVED)?;
            let mut columns = Columns::new(&[Side::Left, Side::Right, Side::Left]);
            for observed in &self.observed {
                columns.row(cells(observed));
            }
            columns.write(out)?;
        }
        output::heading(out, "Summary")?;
        output::paragraph(out, &self.summary(shown.len(), quiet.len()))?;
        Ok(())
    }

    fn summary(&self, shown: usize, at_default: usize) -> String {
        format!(
            "{} wrong, {}, {} at the default; {} without a known setting. A setting of low \
             confidence is never counted as wrong.",
            grouped(self.failing as u64),
            counted(
                (shown - self.failing.min(shown)) as u64,
                "other remark",
                "other remarks"
            ),
            grouped(at_default as u64),
            counted(self.others as u64, "value", "values")
        )
    }
}

impl<'a> FindingJson<'a> {
    fn new(finding: &'a Finding, policy: &dyn Fn(&PlacedValue) -> Option<String>) -> Self {
        let setting = finding.setting;
        let placed_value = &finding.found;
        FindingJson {
            setting: &setting.id,
            name: &setting.name,
            place: placed_value.place.to_string(),
            origin: placed_value.origin.to_string(),
            policy: policy(placed_value),
            found: placed_value.value.as_ref().map(Value::to_string),
            found_as: placed_value.value.as_ref().map(Value::type_name),
            value: finding.value.as_ref().map(ToString::to_string),
            defaults: (finding.defaults.iter())
                .map(|rule| texts::default_rule(rule))
                .collect(),
            differs: finding.differs,
            fails: finding.fails(),
            confidence: finding.confidence.to_string(),
            remarks: &finding.remarks,
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
                .map(|placed_value| placed_value.origin.to_string())
                .collect(),
            sources: &setting.sources,
        }
    }

    /// Returns true if the value equals the default and there are no remarks.
    fn is_quiet(&self) -> bool {
        self.remarks.is_empty() && self.differs == Some(false)
    }

    fn title(&self) -> String {
        let wrong = if self.fails { "WRONG: " } else { "" };
        format!("{wrong}{}", self.name)
    }

    /// Returns a sentence about the value and the default.
    fn sentence(&self) -> String {
        let text = match (&self.value, &self.found, self.found_as) {
            (Some(value), ..) => value.clone(),
            (None, Some(text), Some(kind)) => format!("{text} ({kind})"),
            (None, ..) => "not set".to_owned(),
        };
        let default = match self.defaults.as_slice() {
            [] => "default unknown".to_owned(),
            defaults => format!("default: {}", defaults.join("; or ")),
        };
        let standing = match self.differs {
            Some(true) => "differs",
            Some(false) => "at the default",
            None => "not compared",
        };
        format!("{text} ({default}; {standing})")
    }

    /// Returns the details, one line each.
    fn details(&self) -> Vec<String> {
        let mut lines = vec![format!("{} ({})", self.place, self.origin)];
        let mut add = |label: &str, text: Option<String>| {
            lines.extend(text.map(|text| format!("{label}: {text}")));
        };
        add("policy", self.policy.clone());
        add(
            "set earlier by",
            (!self.set_before.is_empty()).then(|| self.set_before.join(", ")),
        );
        add("takes effect", Some(self.takes_effect.join(", or ")));
        add("evidence", self.evidence.map(str::to_owned));
        add("effective value", self.read_with.map(str::to_owned));
        add("confidence", Some(self.confidence.clone()));
        lines
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        output::paragraph(out, &self.sentence())?;
        for remark in self.remarks {
            let text = format!("{}: {}", remark.kind, remark.says);
            if self.fails {
                output::warning(out, &text)?
            } else {
                output::paragraph(out, &text)?
            }
        }
        for line in self.details() {
            output::quiet(out, &line)?;
        }
        Ok(())
    }
}

/// Heading of the values that are not settings.
const OBSERVED: &str = "Values of reports";

/// CSS styles that break long paths and addresses, so that the table fits into the window.
const TABLE: &str = "td small { overflow-wrap: anywhere } td:first-child { width: 28% }";

/// Formats the audit as an HTML page without scripts and without other files.
fn page(report: &Report<'_>) -> String {
    let rows = |finding: &FindingJson<'_>| -> Markup {
        html! {
            tr {
                td { (Printable(&finding.title())) br; small { (Printable(&finding.place)) } }
                td { (Printable(&finding.sentence())) }
                td {
                    @for remark in finding.remarks {
                        p.warning[finding.fails] { (remark.kind.to_string()) ": " (Printable(&remark.says)) }
                    }
                }
                td {
                    @for line in finding.details().iter().skip(1) { small { (Printable(line)) br; } }
                    small { (Printable(&finding.origin)) br; }
                    @for source in finding.sources { small { a href=(source) { (Printable(source)) } br; } }
                }
            }
        }
    };
    let quiet = (report.findings.iter())
        .filter(|finding| finding.is_quiet())
        .count();
    let shown = report.findings.len() - quiet;
    const TITLE: &str = "laglab tune audit";
    let header = html! {
        p.what { "Settings of this machine" }
        h1 { (TITLE) }
        p { (Printable(&texts::machine(report.machine))) }
    };
    let main = html! {
        section {
            h2 { "Settings" }
            p { (report.summary(shown, quiet)) }
            table {
                thead { tr {
                    th scope="col" { "Setting" } th scope="col" { "Value" }
                    th scope="col" { "Remarks" } th scope="col" { "Details" }
                } }
                tbody { @for finding in &report.findings { (rows(finding)) } }
            }
        }
        @if !report.observed.is_empty() {
            section {
                h2 { (OBSERVED) }
                table {
                    thead { tr {
                        th scope="col" { "Name" } th scope="col" { "Value" }
                        th scope="col" { "Process or driver" } th scope="col" { "Origin" }
                    } }
                    tbody { @for observed in &report.observed { tr {
                        @for cell in cells(observed) { td { (Printable(&cell)) } }
                        td { small { (Printable(&observed.origin.to_string())) } }
                    } } }
                }
            }
        }
    };
    let page = TextPage {
        title: TITLE,
        style: TABLE,
        header,
        main,
    };
    page.still()
}
