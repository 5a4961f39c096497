//! Settings of the trace session.

use std::fmt;
use std::marker::PhantomData;

use record::{Capture, Keyword, Provider, RecorderOption, StackWalk};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

/// Settings of the trace session. The default records everything that explains latency, including
/// stacks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Recording {
    /// Enabled kernel keywords, named as in xperf.
    #[serde(deserialize_with = "named")]
    pub(crate) kernel: Vec<Keyword>,
    /// Kinds of events that are logged with a stack. A kind is ignored if its keyword is not in
    /// `kernel`.
    #[serde(deserialize_with = "named")]
    pub(crate) stacks: Vec<StackWalk>,
    /// Enabled manifest providers.
    #[serde(deserialize_with = "named")]
    pub(crate) providers: Vec<Provider>,
    /// Time between two samples, in 100 ns.
    pub(crate) sampling_interval: u32,
    /// Size of a trace buffer in KiB: a power of two from 1 to 16,384.
    pub(crate) buffer_kib: u32,
    /// True if buffers are compressed, as in merged traces.
    pub(crate) compressed: bool,
}

impl Default for Recording {
    fn default() -> Recording {
        Recording {
            kernel: Keyword::values().map(|(keyword, _)| keyword).collect(),
            stacks: vec![
                StackWalk::CSwitch,
                StackWalk::ReadyThread,
                StackWalk::SampledProfile,
            ],
            providers: Provider::ALL.to_vec(),
            sampling_interval: 10_000,
            buffer_kib: 64,
            compressed: false,
        }
    }
}

impl Recording {
    /// Returns true if the keyword is recorded.
    pub(crate) fn has(&self, keyword: Keyword) -> bool {
        self.kernel.contains(&keyword)
    }

    /// Returns true if the stacks of these events are recorded. The recording must also contain the keyword of the
    /// events.
    pub(crate) fn walks(&self, stack: StackWalk) -> bool {
        self.stacks.contains(&stack) && self.has(stack.needs())
    }
}

/// Returns the settings of a scenario that record the events of a capture, as `path = value`. The model cannot log the
/// events of `laglab record input`: it logs the input events of UIforETW instead.
pub fn settings(capture: &Capture) -> [String; 3] {
    let setting = |path: &str, names: Vec<&str>| format!("record.{path} = {names:?}");
    let keywords = Keyword::values().filter(|(value, _)| capture.keywords().any(|it| it == *value));
    let stacks = StackWalk::values().filter(|(value, _)| capture.stacks().any(|it| it == *value));
    // A provider can be enabled without the keywords of the events that the model logs.
    let is_logged = |provider: Provider| {
        capture.kinds().any(
            |kind| matches!(kind.recorded_by(), RecorderOption::Provider(one, _) if one == provider),
        )
    };
    let providers = Provider::values().filter(|(provider, _)| is_logged(*provider));
    [
        setting("kernel", keywords.map(|(_, name)| name).collect()),
        setting("stacks", stacks.map(|(_, name)| name).collect()),
        setting("providers", providers.map(|(_, name)| name).collect()),
    ]
}

/// Option of the session that the model can record.
trait SessionOption: Copy {
    /// Returns each option with its name in scenarios.
    fn values() -> impl Iterator<Item = (Self, &'static str)>;
}

impl SessionOption for Keyword {
    fn values() -> impl Iterator<Item = (Keyword, &'static str)> {
        let keywords = Keyword::ALL.into_iter();
        keywords
            .filter(|keyword| group_flags(*keyword).is_some())
            .map(|keyword| (keyword, keyword.xperf()))
    }
}

impl SessionOption for StackWalk {
    fn values() -> impl Iterator<Item = (StackWalk, &'static str)> {
        StackWalk::ALL
            .map(|stack| (stack, stack.xperf()))
            .into_iter()
    }
}

impl SessionOption for Provider {
    fn values() -> impl Iterator<Item = (Provider, &'static str)> {
        let named = |provider: Provider| match provider {
            // The provider of UIforETW logs the pressed keys.
            Provider::Input => (provider, "Multi-Input"),
            _ => (provider, provider.name()),
        };
        Provider::ALL.map(named).into_iter()
    }
}

/// Reads a list of names.
fn named<'de, D: Deserializer<'de>, T: SessionOption>(list: D) -> Result<Vec<T>, D::Error> {
    let names = Vec::<NamedOption<T>>::deserialize(list)?;
    Ok(names.into_iter().map(|NamedOption(value)| value).collect())
}

/// An option that is given by its name.
struct NamedOption<T>(T);

impl<'de, T: SessionOption> Deserialize<'de> for NamedOption<T> {
    fn deserialize<D: Deserializer<'de>>(name: D) -> Result<NamedOption<T>, D::Error> {
        name.deserialize_str(NameVisitor(PhantomData))
    }
}

/// Finds the option with a name. The reader of the scenario adds the place of the name to the error of a visitor.
struct NameVisitor<T>(PhantomData<T>);

impl<T: SessionOption> Visitor<'_> for NameVisitor<T> {
    type Value = NamedOption<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<NamedOption<T>, E> {
        let value = T::values().find(|(_, own)| *own == name);
        value.map(|(value, _)| NamedOption(value)).ok_or_else(|| {
            let names: Vec<String> = T::values().map(|(_, name)| format!("`{name}`")).collect();
            E::custom(format!(
                "unknown variant `{name}`, expected one of {}",
                names.join(", ")
            ))
        })
    }
}

/// Returns the keyword's bits in the session's group masks. The top three bits are the index of the mask. Returns `None`
/// for a keyword that cannot be set: every simulated trace has the data of processor groups and nodes, and no simulated
/// trace has file operations. Source: System Informer's `ntwmi.h`.
pub(super) fn group_flags(keyword: Keyword) -> Option<u32> {
    Some(match keyword {
        Keyword::ProcessThread => 0x3,
        Keyword::Loader => 0x4,
        Keyword::CSwitch => 0x2000_0004,
        Keyword::ReadyThread => 0x2000_0200,
        Keyword::ThreadPriority => 0x2000_2000,
        Keyword::AntiStarvation => 0x4000_0001,
        Keyword::Dpc => 0x2000_0080,
        Keyword::Interrupt => 0x2000_4000,
        Keyword::SampledProfile => 0x2000_0002,
        Keyword::DiskIo => 0x100,
        Keyword::DiskIoInit => 0x400,
        Keyword::FileName => 0x200,
        Keyword::HardFaults => 0x2000,
        Keyword::NetworkTrace => 0x1_0000,
        Keyword::Power => 0x8000_8000,
        Keyword::CpuConfig | Keyword::FileIo | Keyword::FileIoInit => return None,
    })
}
