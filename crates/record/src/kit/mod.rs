//! A capture as files: a profile, scripts that record it, and what to know about it.

mod batch;
pub mod commands;
mod powershell;
mod profile;
mod readme;

pub use commands::{Command, Mode, SETTINGS};

use crate::{Buffers, Capture, Cost, Investigation, Kind, Machine, Needs, Provider, needs};

/// What a recording for an investigation is made with, on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kit {
    /// What is asked.
    pub investigation: Investigation,
    /// Of whom.
    pub machine: Machine,
    /// How much is recorded of it.
    pub variant: Variant,
    /// Whether all of that or only what is needed.
    pub detail: Detail,
    /// The NUMA node that the recorder runs on: one that is not what is investigated. Only where
    /// there is more than one.
    pub node: Option<u32>,
}

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// All that is of use.
    Workstation,
    /// Without the stacks of what happens most.
    LargeServer,
}

/// How much of what is of use is recorded. A profile has a form for each, as the documentation of WPR
/// ("Detail Level", Microsoft Learn) recommends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Verbose,
    /// What the theories cannot be judged without.
    Light,
}

impl Detail {
    /// Both, the one that WPR takes by itself first.
    pub const ALL: [Detail; 2] = [Detail::Verbose, Detail::Light];

    /// Its name in profiles.
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
    /// Its name.
    pub name: String,
    /// All of it, with the line ends that it must have.
    pub text: String,
}

impl Kit {
    /// The kit for a machine as it is: a large server records less, and where there are several NUMA
    /// nodes the recorder runs on the last of them, since devices are bound to the first.
    pub fn new(investigation: Investigation, machine: Machine) -> Kit {
        let variant = match machine.is_large_server() {
            true => Variant::LargeServer,
            false => Variant::Workstation,
        };
        Kit {
            investigation,
            machine,
            variant,
            detail: Detail::Verbose,
            node: machine.nodes.checked_sub(1).filter(|node| *node > 0),
        }
    }

    /// What its files and its profile are called.
    pub fn name(&self) -> String {
        format!("laglab-{}", self.investigation.name())
    }

    /// The same with that detail.
    #[must_use]
    pub fn with_detail(self, detail: Detail) -> Kit {
        Kit { detail, ..self }
    }

    /// What it records.
    pub fn capture(&self) -> Capture {
        match (self.detail, self.variant) {
            (Detail::Light, _) => self.investigation.light_capture(),
            (Detail::Verbose, Variant::Workstation) => self.investigation.capture(),
            (Detail::Verbose, Variant::LargeServer) => {
                self.investigation.capture_for_large_server()
            }
        }
    }

    /// What WPR is to start of the profile's file: `FILE!NAME`, and the detail where WPR would take
    /// the other.
    pub fn profile_of(&self, file: &str) -> String {
        let detail = match self.detail {
            Detail::Verbose => "",
            Detail::Light => ".light",
        };
        format!("{file}!{}{detail}", self.name())
    }

    /// How fast the recording grows, roughly.
    pub fn cost(&self) -> Cost {
        Cost::of(&self.capture(), self.machine.cpus)
    }

    /// Theories that can be judged by it, in the order in which `explain` tells them.
    pub fn judges(&self) -> Vec<&'static Needs> {
        let capture = self.capture();
        let all = needs::THEORIES.iter();
        all.filter(|needs| capture.satisfies(needs)).collect()
    }

    /// The profile for WPR: [classic](crate::wprp), one profile, verbose and light, to a file and in
    /// memory.
    pub fn profile(&self) -> String {
        profile::write(self)
    }

    /// All files.
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

    /// The profile's file.
    pub fn profile_file(&self) -> String {
        format!("{}.wprp", self.name())
    }

    /// Whether it records packets, for which a second recorder has to bind a filter.
    pub fn has_packets(&self) -> bool {
        self.capture().records(Kind::Packets)
    }

    /// Buffers of its sessions, by whether it keeps them in memory: the kernel's and the providers'.
    pub fn buffers(&self, in_memory: bool) -> (Buffers, Option<Buffers>) {
        let kernel = match in_memory {
            true => Buffers::kernel_in_memory(self.machine),
            false => Buffers::kernel_to_file(self.machine),
        };
        let has_providers = !self.capture().providers().is_empty();
        let providers = has_providers.then(|| Buffers::providers(self.machine, in_memory));
        (kernel, providers)
    }

    /// Whether events of that provider are recorded.
    fn has_provider(&self, provider: Provider) -> bool {
        let capture = self.capture();
        let mut providers = capture.providers().iter();
        providers.any(|enabled| enabled.provider == provider)
    }
}

/// Batch files are read by lines that end so: with others, `goto` now and then misses its label.
fn with_windows_line_ends(text: &str) -> String {
    text.replace('\n', "\r\n")
}
