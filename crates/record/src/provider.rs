//! Event providers other than the kernel session.

/// A provider whose events laglab reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// The window manager.
    Win32k,
    /// Provider with a manifest that logs events about processes.
    KernelProcess,
    /// Power states and requests for timer resolutions.
    KernelPower,
    /// Network packets. They are logged only while the NDIS filter driver is bound to the adapter.
    PacketCapture,
    /// The runtime of .NET: garbage collections, thread pools.
    DotNet,
    /// Times of user input that `laglab record input` logs.
    Input,
}

impl Provider {
    /// All providers.
    pub const ALL: [Provider; 6] = [
        Provider::Win32k,
        Provider::KernelProcess,
        Provider::KernelPower,
        Provider::PacketCapture,
        Provider::DotNet,
        Provider::Input,
    ];

    /// Returns the name of the provider. The name `Laglab-Input` is not registered in Windows, so sessions
    /// must use its GUID (see [`Provider::session_name`]).
    pub fn name(self) -> &'static str {
        match self {
            Provider::Win32k => "Microsoft-Windows-Win32k",
            Provider::KernelProcess => "Microsoft-Windows-Kernel-Process",
            Provider::KernelPower => "Microsoft-Windows-Kernel-Power",
            Provider::PacketCapture => "Microsoft-Windows-NDIS-PacketCapture",
            Provider::DotNet => "Microsoft-Windows-DotNETRuntime",
            Provider::Input => "Laglab-Input",
        }
    }

    /// Returns the GUID in lower case. The GUID of `Laglab-Input` is a hash of its name, computed as
    /// TraceLogging specifies.
    pub fn guid(self) -> &'static str {
        match self {
            Provider::Win32k => "8c416c79-d49b-4f01-a467-e56d3aa8234c",
            Provider::KernelProcess => "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716",
            Provider::KernelPower => "331c3b3a-2005-44c2-ac5e-77220c37d6b4",
            Provider::PacketCapture => "2ed6006e-4729-4609-b423-3ee7bcd678ef",
            Provider::DotNet => "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
            Provider::Input => "cc034ed5-a9f4-5c52-dfab-c2b323286686",
        }
    }

    /// Returns the name or GUID that is used in profiles and command lines.
    pub fn session_name(self) -> &'static str {
        match self {
            Provider::Input => self.guid(),
            _ => self.name(),
        }
    }

    /// Returns the provider with this name or GUID, ignoring case and braces.
    pub fn from_name(name: &str) -> Option<Provider> {
        let name = name.trim_start_matches('{').trim_end_matches('}');
        Provider::ALL.into_iter().find(|provider| {
            name.eq_ignore_ascii_case(provider.name()) || name.eq_ignore_ascii_case(provider.guid())
        })
    }
}
