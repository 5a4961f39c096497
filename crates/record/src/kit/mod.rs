//! Kits: a WPR profile, scripts that record with it, and a README.

mod batch;
pub mod commands;
mod powershell;
mod profile;
mod readme;

pub use commands::{Command, Mode, SETTINGS};

use crate::{Buffers, Capture, Cost, Investigation, Kind, Machine, Needs, Provider, needs};

/// Choices that determine the files of a kit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kit {
    /// Question that the recording should answer.
    pub investigation: Investigation,
    /// The machine to record.
    pub machine: Machine,
    /// Variant for the size of the machine.
    pub variant: Variant,
    /// Level of detail of the recording.
    pub detail: Detail,
    /// NUMA node on which the recorder runs. It is not the node under investigation. `None` if the machine
    /// has only one node.
    pub node: Option<u32>,
}

/// Variant of a kit for the size of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Records all useful kinds of events.
    Workstation,
    /// Does not record the stacks of the most frequent events.
    LargeServer,
}

/// Level of detail. Each profile has both levels, as WPR's documentation recommends ("Detail Level",
/// Microsoft Learn).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Records all useful kinds of events.
    Verbose,
    /// Records only the kinds of events that theories need for a verdict.
    Light,
}

impl Detail {
    /// Both levels. If the command line of WPR states no level, WPR uses the first.
    pub const ALL: [Detail; 2] = [Detail::Verbose, Detail::Light];

    /// Returns the name of the level in profiles.
    pub fn name(self) -> &'static str {
        match self {
            Detail::Verbose => "Verbose",
            Detail::Light => "Light",
        }
    }
}

/// A file of a kit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// File name.
    pub name: String,
    /// Content of the file, with the line ends that its readers need.
    pub text: String,
}

impl Kit {
    /// Returns the kit for a machine. The kit for a large server records less. On a machine with several NUMA nodes,
    /// the recorder runs on the last node, because devices are bound to the first.
    pub fn new(investigation: Investigation, machine: Machine) -> Kit {
        let variant = if machine.is_large_server() {
            Variant::LargeServer
        } else {
            Variant::Workstation
        };
        Kit {
            investigation,
            machine,
            variant,
            detail: Detail::Verbose,
            node: machine.nodes.checked_sub(1).filter(|node| *node > 0),
        }
    }

    /// Returns the name of the profile. File names start with it.
    pub fn name(&self) -> String {
        format!("laglab-{}", self.investigation.name())
    }

    /// Returns the kit with another level of detail.
    #[must_use]
    pub fn with_detail(self, detail: Detail) -> Kit {
        Kit { detail, ..self }
    }

    /// Returns the kernel keywords, stacks and providers that the kit records.
    pub fn capture(&self) -> Capture {
        match (self.detail, self.variant) {
            (Detail::Light, _) => self.investigation.light_capture(),
            (Detail::Verbose, Variant::Workstation) => self.investigation.capture(),
            (Detail::Verbose, Variant::LargeServer) => {
                self.investigation.capture_for_large_server()
            }
        }
    }

    /// Returns the argument of `wpr -start`: `FILE!NAME`, followed by the level of detail if it is not WPR's
    /// default.
    pub fn profile_argument(&self, file: &str) -> String {
        let detail = match self.detail {
            Detail::Verbose => "",
            Detail::Light => ".light",
        };
        format!("{file}!{}{detail}", self.name())
    }

    /// Returns the estimated growth of the recording.
    pub fn cost(&self) -> Cost {
        Cost::estimate(&self.capture(), self.machine.cpus)
    }

    /// Returns the needs of the theories that get a verdict from the recording, in the order of `explain`.
    pub fn judged(&self) -> Vec<&'static Needs> {
        let capture = self.capture();
        let all = needs::THEORIES.iter();
        all.filter(|needs| needs.are_met_by(&capture)).collect()
    }

    /// Returns the text of the WPR profile. It is in the [classic](crate::wprp) subset. It has both levels
    /// of detail, each for recording to a file and in memory.
    pub fn profile(&self) -> String {
        profile::write(self)
    }

    /// Returns all files of the kit.
    pub fn files(&self) -> Vec<File> {
        let file = |name: &str, text: String| File {
            name: name.to_owned(),
            text,
        };
        vec![
            file(
                &self.profile_file(),
                with_windows_line_ends(&self.profile()),
            ),
            file("record.cmd", with_windows_line_ends(&batch::with_wpr(self))),
            file(
                "record.ps1",
                with_windows_line_ends(&powershell::write(self)),
            ),
            file(
                "record-xperf.cmd",
                with_windows_line_ends(&batch::with_xperf(self)),
            ),
            file("README.md", readme::write(self)),
        ]
    }

    /// Returns the file name of the profile.
    pub fn profile_file(&self) -> String {
        format!("{}.wprp", self.name())
    }

    /// Returns true if network packets are recorded. A second recorder must then bind a filter driver.
    pub fn has_packets(&self) -> bool {
        self.capture().records(Kind::Packets)
    }

    /// Returns the buffers of the kernel session and of the session for providers.
    pub fn buffers(&self, in_memory: bool) -> (Buffers, Option<Buffers>) {
        let kernel = if in_memory {
            Buffers::kernel_in_memory(self.machine)
        } else {
            Buffers::kernel_to_file(self.machine)
        };
        let has_providers = !self.capture().providers().is_empty();
        let providers = has_providers.then(|| Buffers::providers(self.machine, in_memory));
        (kernel, providers)
    }

    /// Returns true if events of the provider are recorded.
    fn has_provider(&self, provider: Provider) -> bool {
        let capture = self.capture();
        let mut providers = capture.providers().iter();
        providers.any(|enabled| enabled.provider == provider)
    }
}

/// Converts line ends to the line ends of Windows. In batch files with other line ends, `goto` sometimes does
/// not find its label.
fn with_windows_line_ends(text: &str) -> String {
    text.replace('\n', "\r\n")
}
