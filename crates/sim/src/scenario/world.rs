//! Processes, devices, traffic and actions of a scenario.

use rules::rss::Rss;
use serde::{Deserialize, Deserializer};

use super::Amount;
use super::spelling::understood;
use super::{Frames, Name, Step};
use crate::quantity::{Bytes, Nanoseconds, Share};

/// A scheduling group. Its threads have a rank, which precedes priority.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// Weight of the group, 1 to 9.
    #[serde(default = "five")]
    pub(crate) weight: u32,
    /// Number that is added to the rank while the group's process is in the background.
    #[serde(default)]
    pub(crate) bias: u8,
    /// True if the group's process is in the background at the start, so that the bias applies.
    #[serde(default)]
    pub(crate) background: bool,
    /// Hard limit of the group's use: maximum share of the time of all processors.
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
    /// Name of the image file, such as `LockApp.exe`.
    pub(crate) name: String,
    /// Path of the image file. If absent, a path is invented.
    pub(crate) path: Option<String>,
    pub(crate) command_line: Option<String>,
    pub(crate) id: Option<u32>,
    #[serde(default)]
    pub(crate) class: PriorityClass,
    #[serde(default = "one")]
    pub(crate) session: u32,
    /// Name of the process's scheduling group.
    pub(crate) group: Option<Name>,
    /// True if the process has the focus at the start.
    #[serde(default)]
    pub(crate) focus: bool,
    /// True if Windows honours the process's timer resolution while its windows are occluded.
    #[serde(default)]
    pub(crate) ignores_occlusion: bool,
    /// Start time. If absent, the process exists at the trace's start.
    pub(crate) start: Option<Nanoseconds>,
    /// Account under which the process runs.
    #[serde(default)]
    pub(crate) user: Account,
    /// Name of the service in the process, if any.
    pub(crate) service: Option<String>,
    #[serde(default, rename = "thread")]
    pub(crate) threads: Vec<ThreadSpec>,
}

fn one() -> u32 {
    1
}

/// Account under which a process runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Account {
    /// The interactive user.
    #[default]
    Person,
    /// The local system.
    System,
    /// A service with few rights and only local access. `NetworkService` also has network access.
    LocalService,
    NetworkService,
}

/// Priority class of a process. It defines the base priority of threads whose relative priority is
/// normal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorityClass {
    /// `IDLE_PRIORITY_CLASS`.
    Idle,
    /// `BELOW_NORMAL_PRIORITY_CLASS`.
    BelowNormal,
    /// `NORMAL_PRIORITY_CLASS`.
    #[default]
    Normal,
    /// `ABOVE_NORMAL_PRIORITY_CLASS`.
    AboveNormal,
    /// `HIGH_PRIORITY_CLASS`.
    High,
    /// `REALTIME_PRIORITY_CLASS`.
    Realtime,
}

impl PriorityClass {
    /// All classes, from the lowest to the highest.
    pub const ALL: [PriorityClass; 6] = [
        PriorityClass::Idle,
        PriorityClass::BelowNormal,
        PriorityClass::Normal,
        PriorityClass::AboveNormal,
        PriorityClass::High,
        PriorityClass::Realtime,
    ];

    /// Returns the base priority that a thread with this base priority in this class has in another class. The relative
    /// priorities "idle" and "time critical" have fixed priorities: 1 and 15, or 16 and 31 in the real-time class. Source:
    /// the page "Scheduling Priorities" of the Win32 documentation.
    pub fn rebased(self, base: u8, to: PriorityClass) -> u8 {
        let limits = |class: PriorityClass| match class {
            PriorityClass::Realtime => (16, 31),
            _ => (1, 15),
        };
        let ((lowest, highest), (low, high)) = (limits(self), limits(to));
        // In the class "high", 15 is also the priority of the relative priority "highest".
        let is_critical = base == highest && self != PriorityClass::High;
        match base {
            _ if base == lowest => low,
            _ if is_critical => high,
            _ => (i16::from(to.base()) + i16::from(base) - i16::from(self.base()))
                .clamp(i16::from(low), i16::from(high)) as u8,
        }
    }

    /// Returns the base priority of threads whose relative priority is normal.
    pub fn base(self) -> u8 {
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

/// One or more threads with the same properties.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThreadSpec {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default = "one")]
    pub(crate) count: u32,
    /// Base priority. If absent, the thread has the base priority of the process's priority class.
    pub(crate) priority: Option<u8>,
    /// Processors on which the thread may run. If absent, the thread may use the default processors of the
    /// release of Windows.
    pub(crate) affinity: Option<Vec<u16>>,
    pub(crate) ideal: Option<u16>,
    /// True if the truth reports the waits of this thread.
    #[serde(default)]
    pub(crate) watch: bool,
    /// True if the kernel stack is paged out during the thread's first wait.
    #[serde(default)]
    pub(crate) stack_paged_out: bool,
    /// Start time of the thread.
    #[serde(default = "nothing")]
    pub(crate) start: Amount,
    /// Outer frames of all stacks of the thread, innermost frame first.
    #[serde(default, rename = "in")]
    pub(crate) frames: Frames,
    pub(crate) program: Vec<Step>,
}

/// A service routine or DPC, with its stack and its cost in processor time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Routine {
    #[serde(rename = "in")]
    pub(crate) frames: Frames,
    pub(crate) cost: Amount,
}

/// A part of the work of an adapter's DPC, such as the work of a filter driver.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layer {
    /// Name by which overrides select the layer.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "overrides look it up in the text, before the layer is parsed"
    )]
    pub(crate) name: String,
    #[serde(rename = "in")]
    pub(crate) frames: Frames,
    /// Processor time for each DPC.
    #[serde(default = "nothing")]
    pub(crate) per_dpc: Amount,
    /// Processor time for each packet that the DPC handles.
    #[serde(default = "nothing")]
    pub(crate) per_packet: Amount,
    /// Processor time for each KiB of the packets.
    #[serde(default = "nothing")]
    pub(crate) per_kib: Amount,
}

/// Importance of a DPC. It determines the position in the queue and whether the processor is
/// interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Importance {
    Low,
    #[default]
    Medium,
    MediumHigh,
    High,
}

/// A disk and the driver of its controller.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disk {
    pub(crate) number: u32,
    /// Number of transfers that the disk serves in parallel.
    #[serde(default = "one")]
    pub(crate) queue_depth: u32,
    /// Time that the disk needs for a transfer, in addition to the time for moving the bytes.
    pub(crate) service: Amount,
    /// Throughput of all transfers together, in bytes per second.
    #[serde(default = "hundred_mib")]
    pub(crate) bytes_per_second: Bytes,
    pub(crate) isr: Routine,
    pub(crate) dpc: Routine,
    /// Processor that the disk interrupts.
    #[serde(default)]
    pub(crate) cpu: u16,
}

fn hundred_mib() -> Bytes {
    Bytes(100 << 20)
}

/// A network adapter, its driver, and the drivers that are bound to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nic {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) rss: Rss,
    pub(crate) isr: Routine,
    /// Parts of the work of the adapter's DPC, outermost part first.
    #[serde(rename = "layer")]
    pub(crate) layers: Vec<Layer>,
    /// Minimum time between two interrupts of a receive queue.
    #[serde(default = "beginning")]
    pub(crate) moderation: Nanoseconds,
    /// True if one DPC handles all packets that arrived while the previous DPC of the queue ran.
    /// False if each arrival has a separate interrupt and DPC.
    #[serde(default = "yes")]
    pub(crate) coalesce: bool,
}

fn yes() -> bool {
    true
}

/// Another device that interrupts: a USB controller, a timer card.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// Time between two interrupts.
    pub(crate) every: Option<Amount>,
    #[serde(default = "beginning")]
    pub(crate) from: Nanoseconds,
    pub(crate) to: Option<Nanoseconds>,
    /// Number of interrupts between `from` and `to`. The time from `from` to `to` is divided into equal
    /// slots, and each slot contains one interrupt at a random time.
    pub(crate) count: Option<u64>,
    /// Processors that the device interrupts in turn.
    #[serde(default = "first_cpu")]
    pub(crate) cpus: Vec<u16>,
    /// True for a line-based interrupt, false for a message-signalled interrupt.
    #[serde(default)]
    pub(crate) line: bool,
    pub(crate) isr: Option<Routine>,
    pub(crate) dpc: Option<Routine>,
    #[serde(default)]
    pub(crate) importance: Importance,
    /// Processor on which the DPC is queued. If absent, the DPC is queued on the interrupted processor.
    pub(crate) target: Option<u16>,
    /// True if the DPC belongs to a timer. It then runs at the first clock interrupt after the
    /// timer's due time.
    #[serde(default)]
    pub(crate) timer: bool,
    /// True if the DPC runs in a thread.
    #[serde(default)]
    pub(crate) threaded: bool,
    /// Synchronisation object that the DPC sets.
    pub(crate) sets: Option<Name>,
}

fn first_cpu() -> Vec<u16> {
    vec![0]
}

/// Traffic through a network adapter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flow {
    pub(crate) name: String,
    pub(crate) nic: Name,
    /// Process that owns the packets. If absent, the System process owns them.
    pub(crate) process: Option<Name>,
    #[serde(default)]
    pub(crate) tcp: bool,
    #[serde(default = "local_address")]
    pub(crate) local: std::net::SocketAddr,
    #[serde(default = "remote_address")]
    pub(crate) remote: std::net::SocketAddr,
    /// Number of different remote addresses and ports, counted upwards from `remote`.
    #[serde(default = "one")]
    pub(crate) peers: u32,
    /// Size of a packet or block in bytes, without headers.
    #[serde(default = "packet_bytes")]
    pub(crate) bytes: Bytes,

    /// Time between two arrivals of packets.
    pub(crate) every: Option<Amount>,
    /// Number of arrivals, each of `packets` packets, between `from` and `to`. The time from `from` to `to`
    /// is divided into equal slots, and each slot contains one arrival at a random time.
    pub(crate) count: Option<u64>,
    #[serde(default = "one")]
    pub(crate) packets: u32,
    #[serde(default = "beginning")]
    pub(crate) from: Nanoseconds,
    pub(crate) to: Option<Nanoseconds>,
    /// Number of blocks of `bytes` that are in flight. When this machine replies to a block, the remote side
    /// sends the next block.
    pub(crate) window: Option<u32>,
    /// True if the remote side answers each packet.
    #[serde(default)]
    pub(crate) echo: bool,

    /// Network delay in one direction.
    #[serde(default = "nothing")]
    pub(crate) delay: Amount,
    /// Time that the remote side takes for its answer or its next block.
    #[serde(default = "nothing")]
    pub(crate) think: Amount,
    /// Share of packets that the network loses.
    pub(crate) loss: Option<Share>,
    /// DSCP mark that a policy requests for sent packets.
    #[serde(default)]
    pub(crate) dscp: u8,
    /// True if this machine removes the DSCP mark before the packet is captured.
    #[serde(default)]
    pub(crate) bleached: bool,
    /// Processor time that the sending thread needs for a packet.
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

/// An action that happens at a given time.
#[derive(Clone, Debug)]
pub(crate) struct Action {
    pub(crate) time: Nanoseconds,
    /// Time between repetitions.
    pub(crate) every: Nanoseconds,
    /// Total number of occurrences.
    pub(crate) times: u32,
    pub(crate) what: What,
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Action, D::Error> {
        understood::<RawAction, Action, D>(deserializer)
    }
}

/// Kind of action.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Sets an object.
    Set(Name),
    /// Presses a key, given by its virtual key code. The process with the focus gets a message.
    Key(u32),
    /// Gives a process the focus.
    Focus(Name),
    /// Freezes a process.
    Freeze(Name),
    /// Thaws a process.
    Thaw(Name),
    /// Moves a process to the background, so that the bias of its scheduling group applies.
    Background(Name),
    /// Moves a process to the foreground, so that the bias no longer applies.
    Foreground(Name),
    /// Hides the windows of a process: all are covered or minimised.
    Occlude(Name),
    /// Shows the windows of a process.
    Show(Name),
    /// Suspends the machine for this time.
    Suspend(Nanoseconds),
    /// Writes a mark into the trace.
    Mark(String),
}

/// An action as a scenario writes it: one verb and its arguments.
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
            return Err("`times` needs `every`, the time between repetitions".to_owned());
        }
        let actions: Vec<What> = [
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
        let [what] = <[What; 1]>::try_from(actions).map_err(|actions| {
            format!(
                "an `at` needs exactly one action (set, key, focus, …), found {}",
                actions.len()
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

/// A time range for which the truth has separate sums.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    pub(crate) name: String,
    pub(crate) from: Nanoseconds,
    pub(crate) to: Nanoseconds,
}

/// Defects of the trace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Trouble {
    /// Time ranges with lost events.
    pub(crate) lose: Vec<Loss>,
    /// Processors whose clock differs from the others.
    pub(crate) skew: Vec<Skew>,
}

/// A time range in which events of some processors are lost.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Loss {
    pub(crate) from: Nanoseconds,
    pub(crate) to: Nanoseconds,
    /// Processors whose events are lost. If absent, the events of all processors are lost.
    pub(crate) cpus: Option<Vec<u16>>,
}

/// A processor whose clock is ahead of the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Skew {
    pub(crate) cpu: u16,
    pub(crate) ahead: Nanoseconds,
    /// Time from which the difference applies. If absent, the difference applies from the trace's start.
    #[serde(default = "beginning")]
    pub(crate) from: Nanoseconds,
}
