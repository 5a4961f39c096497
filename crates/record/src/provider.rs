//! Providers other than the kernel's session, and what of theirs is recorded.

/// A provider whose events laglab reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// The window manager.
    Win32k,
    /// Processes, as a manifest provider.
    KernelProcess,
    /// Power and timer resolution.
    KernelPower,
    /// Packets, where the filter driver of NDIS is bound to the adapter.
    PacketCapture,
    /// Times of the user's input, from `laglab record input`.
    Input,
}

impl Provider {
    /// All of them.
    pub const ALL: [Provider; 5] = [
        Provider::Win32k,
        Provider::KernelProcess,
        Provider::KernelPower,
        Provider::PacketCapture,
        Provider::Input,
    ];

    /// Its name, as Windows registers it. `Laglab-Input` is registered nowhere: its GUID must be
    /// used (see [`Provider::session_name`]).
    pub fn name(self) -> &'static str {
        match self {
            Provider::Win32k => "Microsoft-Windows-Win32k",
            Provider::KernelProcess => "Microsoft-Windows-Kernel-Process",
            Provider::KernelPower => "Microsoft-Windows-Kernel-Power",
            Provider::PacketCapture => "Microsoft-Windows-NDIS-PacketCapture",
            Provider::Input => "Laglab-Input",
        }
    }

    /// Its GUID, in lower case. That of `Laglab-Input` is made of its name, as TraceLogging does.
    pub fn guid(self) -> &'static str {
        match self {
            Provider::Win32k => "8c416c79-d49b-4f01-a467-e56d3aa8234c",
            Provider::KernelProcess => "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716",
            Provider::KernelPower => "331c3b3a-2005-44c2-ac5e-77220c37d6b4",
            Provider::PacketCapture => "2ed6006e-4729-4609-b423-3ee7bcd678ef",
            Provider::Input => "cc034ed5-a9f4-5c52-dfab-c2b323286686",
        }
    }

    /// What profiles and command lines call it by.
    pub fn session_name(self) -> &'static str {
        match self {
            Provider::Input => self.guid(),
            _ => self.name(),
        }
    }

    /// The one of that name or GUID, in any case, with or without braces.
    pub fn of(name: &str) -> Option<Provider> {
        let name = name.trim_start_matches('{').trim_end_matches('}');
        Provider::ALL.into_iter().find(|provider| {
            name.eq_ignore_ascii_case(provider.name()) || name.eq_ignore_ascii_case(provider.guid())
        })
    }
}
