//! Who and what is there: processes, devices, traffic, and what happens when.

use serde::{Deserialize, Deserializer};

use super::Amount;
use super::spelling::understood;
use super::{Frames, Name, Step};
use crate::quantity::{Bytes, Nanoseconds, Share};
use tune::decode::rss::Rss;

/// A scheduling group: its threads have a rank, which goes before priority.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// 1 to 9.
    #[serde(default = "five")]
    pub(crate) weight: u32,
    /// Ranks added while the group's process is in the background.
    #[serde(default)]
    pub(crate) bias: u8,
    /// Whether the bias holds from the beginning.
    #[serde(default)]
    pub(crate) background: bool,
    /// Hard cap: the share of the processors' time that it may use at all.
    pub(crate) rate_cap: Option<Share>,
}

fn nothing() -> Amount {
    Amount::Fixed(Nanoseconds(0))
}

fn beginning() -> Nanoseconds {
    Nanoseconds(0)
}

fn five() -> u32 {
    5
}

/// A process and its threads.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    /// Image file, such as `LockApp.exe`.
    pub(crate) name: String,
    /// Path of the image; made up if absent.
    pub(crate) path: Option<String>,
    pub(crate) command_line: Option<String>,
    pub(crate) id: Option<u32>,
    #[serde(default)]
    pub(crate) class: PriorityClass,
    #[serde(default = "one")]
    pub(crate) session: u32,
    /// Scheduling group.
    pub(crate) group: Option<Name>,
    /// Has the focus at the beginning.
    #[serde(default)]
    pub(crate) focus: bool,
    /// Keeps its timer resolution although it cannot be seen.
    #[serde(default)]
    pub(crate) ignores_occlusion: bool,
    /// When it begins; if absent, it is there when the trace begins.
    pub(crate) start: Option<Nanoseconds>,
    /// Whose it is.
    #[serde(default)]
    pub(crate) user: Account,
    /// The service that it hosts.
    pub(crate) service: Option<String>,
    #[serde(default, rename = "thread")]
    pub(crate) threads: Vec<ThreadSpec>,
}

fn one() -> u32 {
    1
}

/// Whose a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Account {
    /// The person at the machine.
    #[default]
    Person,
    /// Windows itself.
    System,
    /// Services with few rights, on this machine only or in the network.
    LocalService,
    NetworkService,
}

/// Priority class of a process: the priority of a thread of normal level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PriorityClass {
    Idle,
    BelowNormal,
    #[default]
    Normal,
    AboveNormal,
    High,
    Realtime,
}

impl PriorityClass {
    /// Priority of the class's threads of normal level.
    pub(crate) fn base(self) -> u8 {
        match self {
            PriorityClass::Idle => 4,
            PriorityClass::BelowNormal => 6,
            PriorityClass::Normal => 8,
            PriorityClass::AboveNormal => 10,
            PriorityClass::High => 13,
            PriorityClass::Realtime => 24,
        }
    }
}

/// Some threads that do the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadSpec {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default = "one")]
    pub(crate) count: u32,
    /// Base priority; the class's if absent.
    pub(crate) priority: Option<u8>,
    /// Processors it may run on; all if absent.
    pub(crate) affinity: Option<Vec<u16>>,
    pub(crate) ideal: Option<u16>,
    /// The truth tells of this thread's ready waits one by one.
    #[serde(default)]
    pub(crate) watch: bool,
    /// The kernel stack is paged out while the thread waits for the first time.
    #[serde(default)]
    pub(crate) stack_paged_out: bool,
    /// When it begins.
    #[serde(default = "nothing")]
    pub(crate) start: Amount,
    /// Outer frames of its stacks, innermost first.
    #[serde(default, rename = "in")]
    pub(crate) frames: Frames,
    pub(crate) program: Vec<Step>,
}

/// A routine with its cost: where it is on the stack, how long it takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Routine {
    #[serde(rename = "in")]
    pub(crate) frames: Frames,
    pub(crate) cost: Amount,
}

/// A part of a DPC's work, such as a filter driver's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layer {
    /// By which settings choose it.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "it is looked for in the text, before there is a layer"
    )]
    pub(crate) name: String,
    #[serde(rename = "in")]
    pub(crate) frames: Frames,
    /// Cost of each DPC.
    #[serde(default = "nothing")]
    pub(crate) per_dpc: Amount,
    /// Cost of each packet that the DPC handles.
    #[serde(default = "nothing")]
    pub(crate) per_packet: Amount,
    /// Cost of each KiB of the packets.
    #[serde(default = "nothing")]
    pub(crate) per_kib: Amount,
}

/// How important a DPC is: where it is queued and whether its processor is interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Importance {
    Low,
    #[default]
    Medium,
    MediumHigh,
    High,
}

/// A disk and the controller's driver.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disk {
    pub(crate) number: u32,
    /// Transfers that it serves at a time.
    #[serde(default = "one")]
    pub(crate) queue_depth: u32,
    /// Time of a transfer beside its bytes.
    pub(crate) service: Amount,
    /// How fast the bytes of all transfers together move.
    #[serde(default = "hundred_mib")]
    pub(crate) bytes_per_second: Bytes,
    pub(crate) isr: Routine,
    pub(crate) dpc: Routine,
    /// Processor it interrupts.
    #[serde(default)]
    pub(crate) cpu: u16,
}

fn hundred_mib() -> Bytes {
    Bytes(100 << 20)
}

/// A network adapter, its driver and what is bound to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nic {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) rss: Rss,
    pub(crate) isr: Routine,
    /// What its DPC does, from the outer frame inwards.
    #[serde(rename = "layer")]
    pub(crate) layers: Vec<Layer>,
    /// Shortest time between two interrupts of a queue.
    #[serde(default = "beginning")]
    pub(crate) moderation: Nanoseconds,
    /// What arrives while a queue's DPC is under way is handled by the next one together; else
    /// each arrival has an interrupt and a DPC of its own.
    #[serde(default = "yes")]
    pub(crate) coalesce: bool,
}

fn yes() -> bool {
    true
}

/// Any other device that interrupts: a USB controller, a timer card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// Time between two interrupts.
    pub(crate) every: Option<Amount>,
    #[serde(default = "beginning")]
    pub(crate) from: Nanoseconds,
    pub(crate) to: Option<Nanoseconds>,
    /// So many interrupts between `from` and `to`, evenly but for `every`'s jitter within a slot.
    pub(crate) count: Option<u64>,
    /// Processors that it interrupts, in turn.
    #[serde(default = "first_cpu")]
    pub(crate) cpus: Vec<u16>,
    /// A line-based interrupt instead of a message-signalled one.
    #[serde(default)]
    pub(crate) line: bool,
    pub(crate) isr: Option<Routine>,
    pub(crate) dpc: Option<Routine>,
    #[serde(default)]
    pub(crate) importance: Importance,
    /// Processor on which the DPC is queued, if not the interrupted one.
    pub(crate) target: Option<u16>,
    /// It is a timer's DPC: it comes with the first clock interrupt after its time.
    #[serde(default)]
    pub(crate) timer: bool,
    /// The DPC runs in a thread.
    #[serde(default)]
    pub(crate) threaded: bool,
    /// Object that the DPC sets.
    pub(crate) sets: Option<Name>,
}

fn first_cpu() -> Vec<u16> {
    vec![0]
}

/// Traffic through an adapter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) nic: Name,
    /// Whose packets they are; the System process's if absent.
    pub(crate) process: Option<Name>,
    #[serde(default)]
    pub(crate) tcp: bool,
    #[serde(default = "local_address")]
    pub(crate) local: std::net::SocketAddr,
    #[serde(default = "remote_address")]
    pub(crate) remote: std::net::SocketAddr,
    /// Different remote addresses and ports, counted from `remote`.
    #[serde(default = "one")]
    pub(crate) peers: u32,
    /// Bytes of a packet, headers aside.
    #[serde(default = "packet_bytes")]
    pub(crate) bytes: Bytes,

    /// Packets arrive so far apart.
    pub(crate) every: Option<Amount>,
    /// Or so many interrupts of `packets` packets between `from` and `to`, each somewhere in its
    /// slot.
    pub(crate) count: Option<u64>,
    #[serde(default = "one")]
    pub(crate) packets: u32,
    #[serde(default = "beginning")]
    pub(crate) from: Nanoseconds,
    pub(crate) to: Option<Nanoseconds>,
    /// Or the other side has so many blocks of `bytes` under way, each sent when one is answered.
    pub(crate) window: Option<u32>,
    /// The other side answers each packet sent.
    #[serde(default)]
    pub(crate) echo: bool,

    /// One way through the network.
    #[serde(default = "nothing")]
    pub(crate) delay: Amount,
    /// Time that the other side takes for its answer or next block.
    #[serde(default = "nothing")]
    pub(crate) think: Amount,
    /// Share of the packets that the network loses.
    pub(crate) loss: Option<Share>,
    /// The mark that a policy asks for on packets sent.
    #[serde(default)]
    pub(crate) dscp: u8,
    /// Something on this machine takes the mark off before the packet is captured.
    #[serde(default)]
    pub(crate) bleached: bool,
    /// Cost of sending a packet, in the sending thread.
    #[serde(default = "nothing")]
    pub(crate) send_cost: Amount,
}

fn local_address() -> std::net::SocketAddr {
    ([192, 168, 1, 20], 50_000).into()
}

fn remote_address() -> std::net::SocketAddr {
    ([203, 0, 113, 10], 40_000).into()
}

fn packet_bytes() -> Bytes {
    Bytes(1_400)
}

/// Something that happens at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) time: Nanoseconds,
    /// Again after so long,
    pub(crate) every: Nanoseconds,
    /// so many times in all.
    pub(crate) times: u32,
    pub(crate) what: What,
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Action, D::Error> {
        understood::<RawAction, Action, D>(deserializer)
    }
}

/// What happens.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// An object is set.
    Set(Name),
    /// A key is pressed: its virtual key code. The process with the focus gets a message.
    Key(u32),
    /// A process gets the focus.
    Focus(Name),
    /// A process's threads are kept from running.
    Freeze(Name),
    /// They may run again.
    Thaw(Name),
    /// A group's process goes to the background, and bears its bias.
    Background(Name),
    /// It comes to the foreground.
    Foreground(Name),
    /// A process's windows are all covered or minimised.
    Occlude(Name),
    /// They are visible.
    Show(Name),
    /// The machine is suspended for so long.
    Suspend(Nanoseconds),
    /// A mark is written into the trace.
    Mark(String),
}

/// An action as it is spelt: one of the verbs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAction {
    time: Nanoseconds,
    every: Option<Nanoseconds>,
    times: Option<u32>,
    set: Option<Name>,
    key: Option<u32>,
    focus: Option<Name>,
    freeze: Option<Name>,
    thaw: Option<Name>,
    background: Option<Name>,
    foreground: Option<Name>,
    occlude: Option<Name>,
    show: Option<Name>,
    suspend: Option<Nanoseconds>,
    mark: Option<String>,
}

impl TryFrom<RawAction> for Action {
    type Error = String;

    fn try_from(raw: RawAction) -> Result<Action, String> {
        let times = raw.times.unwrap_or(1);
        if times > 1 && raw.every.is_none_or(|every| every.0 == 0) {
            return Err("what happens several `times` needs how far apart: `every`".to_owned());
        }
        let found: Vec<What> = [
            raw.set.map(What::Set),
            raw.key.map(What::Key),
            raw.focus.map(What::Focus),
            raw.freeze.map(What::Freeze),
            raw.thaw.map(What::Thaw),
            raw.background.map(What::Background),
            raw.foreground.map(What::Foreground),
            raw.occlude.map(What::Occlude),
            raw.show.map(What::Show),
            raw.suspend.map(What::Suspend),
            raw.mark.map(What::Mark),
        ]
        .into_iter()
        .flatten()
        .collect();
        let [what] = <[What; 1]>::try_from(found).map_err(|found| {
            format!(
                "one thing happens `at` a moment (set, key, focus, …); {} are said here",
                found.len()
            )
        })?;
        Ok(Action {
            time: raw.time,
            every: raw.every.unwrap_or(Nanoseconds(0)),
            times,
            what,
        })
    }
}

/// A time range that the truth sums up on its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    pub(crate) name: String,
    pub(crate) from: Nanoseconds,
    pub(crate) to: Nanoseconds,
}

/// What is wrong with the capture.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Trouble {
    /// Events that are lost.
    pub(crate) lose: Vec<Loss>,
    /// Processors whose clock is off.
    pub(crate) skew: Vec<Skew>,
}

/// A time in which events of some processors are lost.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Loss {
    pub(crate) from: Nanoseconds,
    pub(crate) to: Nanoseconds,
    /// All if absent.
    pub(crate) cpus: Option<Vec<u16>>,
}

/// A processor whose clock runs ahead of the others'.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Skew {
    pub(crate) cpu: u16,
    pub(crate) ahead: Nanoseconds,
    /// From when on; from the beginning if absent.
    #[serde(default = "beginning")]
    pub(crate) from: Nanoseconds,
}
