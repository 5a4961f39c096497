//! `interrupts`: interrupt service routines and deferred procedure calls.

use rules::kinds::InterruptKind;
use rustc_hash::FxHashMap;

use crate::column::{Named, Names, Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::trackers::{ImageFinder, Trackers};

table! {
    /// One row per run of an interrupt service routine (ISR) or a deferred procedure call (DPC). On Linux, a row is
    /// a run of the handler of an interrupt, or of a softirq.
    ///
    /// A routine is logged when it ends. So the rows are sorted by `end_ns`. Routines can be nested: an ISR
    /// can run inside a DPC or inside another ISR of the same CPU.
    Interrupts, InterruptsView = "interrupts" sorted by end_ns
        title "DPC/ISR Duration"
        record "interrupts (xperf -on INTERRUPT+DPC, WPR keywords Interrupt and DPC)"
        lasts start_ns to end_ns
    {
        /// Start of the routine. Unknown if the start time in the event is impossible. The start time is
        /// impossible if it is after the end of the routine. It is also impossible if a DPC ended after the
        /// start time and this DPC cannot be nested in the routine.
        start_ns: Nullable<i64> = "InitialTime" wpa "Enter Time (s)",
        /// End of the routine.
        end_ns: Vec<i64> = "header time" wpa "Exit Time (s)",
        /// CPU that ran the routine.
        cpu: Vec<u16> = "CPU of the buffer" wpa "CPU",
        /// Kind of routine: `dpc`, `threaded_dpc`, `timer_dpc`, `io_timer`, `isr`, `msi` (ISR of a
        /// message-signalled interrupt) or `passive_isr`. On Linux: `isr` is an interrupt, `dpc` a
        /// softirq, and `threaded_dpc` a softirq in the thread `ksoftirqd`.
        kind: Names<InterruptKind> =
            "PerfInfo DPC, ThreadedDPC, TimerDPC, IoTimer, ISR, ISR-MSI, ISR-Passive"
            wpa "DPC Type, Type",
        /// Address of the routine. On Linux, this is the number of the interrupt or softirq. An interrupt of the
        /// machine itself, such as the timer interrupt, has no number. Its value is 2^32 plus the id of its tracepoint.
        routine: Vec<u64> = "Routine" wpa "Address",
        /// Time from start to end of the routine. It includes the time of all routines that interrupted this
        /// routine.
        duration_ns: Nullable<i64> = "header time - InitialTime" wpa "Inclusive Duration",
        /// Duration without the time of the routines that ran inside this routine on the same CPU. The
        /// routines `threaded_dpc` and `passive_isr` run in threads. The time in which their threads are
        /// preempted is not subtracted.
        exclusive_ns: Nullable<i64> = "duration_ns minus the nested rows of the CPU"
            wpa "Exclusive Duration",
        /// Number of fragments into which other routines split this routine. WPA has one row per fragment.
        /// The mean duration of a fragment is `exclusive_ns / fragments`.
        fragments: Nullable<u32> = "1 + number of nested rows of the CPU"
            wpa "Count (Fragments)",
        /// Duration of the longest fragment of the routine.
        longest_fragment_ns: Nullable<i64> = "exclusive_ns of each fragment"
            wpa "Duration (Fragmented)",
        /// Row in `images` of the kernel module that contains the routine.
        image_row: Nullable<u32> = "routine and start_ns in `images`" wpa "Module",
        /// Interrupt vector of an ISR. Present since Windows Vista.
        vector: Nullable<u16> = "Vector",
        /// Return value of an ISR. The value is 1 if the ISR claimed the interrupt.
        return_value: Nullable<u32> = "ReturnValue",
        /// Message number of a message-signalled interrupt (`msi`).
        message_number: Nullable<u32> = "MessageNumber",
        /// Name of the interrupt or softirq, on Linux.
        name: Text = "Linux irq: irq_handler_entry name, softirq_entry vec; irq_vectors: name of the tracepoint",
    }
}

impl Named for InterruptKind {
    const NAMES: &'static [&'static str] = &[
        "dpc",
        "threaded_dpc",
        "timer_dpc",
        "io_timer",
        "isr",
        "msi",
        "passive_isr",
    ];

    fn code(self) -> i8 {
        self as i8
    }
}

/// State that is kept from one slice to the next while rows are made.
#[derive(Debug, Default)]
pub struct InterruptState {
    images: ImageFinder,
    /// Ended routines of each CPU. If a routine is nested in another routine that was already read, the
    /// nested routine is left out.
    ended: FxHashMap<u16, Vec<EndedRoutine>>,
}

/// A routine that ended. The list of a CPU contains the routines in the order of their starts.
#[derive(Clone, Copy, Debug)]
struct EndedRoutine {
    start_ns: i64,
    end_ns: i64,
    kind: InterruptKind,
}

/// Maximum number of ended routines that are stored per CPU. Older routines are rarely needed. The reason is
/// that a routine is nested in a later routine only if the later routine lasts longer than all routines
/// between them.
const REMEMBERED: usize = 1 << 16;

impl EndedRoutine {
    /// Returns true if a DPC seems to have run inside this routine although this is impossible. A DPC
    /// interrupts neither a DPC nor an ISR. (The DPC of a timer may run inside the DPC of another timer.)
    fn is_impossible(&self, ended: &[EndedRoutine]) -> bool {
        use InterruptKind::{Dpc, Isr, MessageIsr, TimerDpc};
        let is_inside = |inner: &&EndedRoutine| inner.start_ns >= self.start_ns;
        let mut inside = ended.iter().rev().take_while(is_inside);
        matches!(self.kind, Dpc | TimerDpc | Isr | MessageIsr)
            && inside.any(|inner| inner.kind == Dpc && inner.end_ns > self.start_ns)
    }
}

impl Register for Interrupts {
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Images)];
}

impl EventTable for Interrupts {
    type Raw = Interrupts;
    type State = InterruptState;

    fn join(
        raw: &mut Interrupts,
        state: &mut InterruptState,
        trackers: &Trackers<'_>,
    ) -> Interrupts {
        let mut rows = std::mem::take(raw);
        let mut impossible = Vec::new();
        for row in 0..rows.len() {
            let end_ns = rows.end_ns[row];
            let routine = rows.routine[row];
            let at = rows.start_ns.get(row).unwrap_or(end_ns);
            // Routines of Linux have a name instead of an address.
            let image = match rows.name.get(row) {
                Some(_) => None,
                None => state.images.find(trackers, 0, routine, at),
            };
            rows.image_row.push(image);
            let ended = state.ended.entry(rows.cpu[row]).or_default();
            let kind = rows.kind.0[row];
            let whole = rows.start_ns.get(row).map(|start_ns| EndedRoutine {
                start_ns,
                end_ns,
                kind,
            });
            let is_impossible = whole.is_some_and(|whole| whole.is_impossible(ended));
            impossible.extend(is_impossible.then_some(row));
            let fragments = whole
                .filter(|_| !is_impossible)
                .map(|whole| fragments(ended, whole));
            rows.exclusive_ns.push(fragments.map(|f| f.sum_ns));
            rows.fragments.push(fragments.map(|f| f.count));
            rows.longest_fragment_ns
                .push(fragments.map(|f| f.longest_ns));
        }
        if !impossible.is_empty() {
            for column in [&mut rows.start_ns, &mut rows.duration_ns] {
                let times = column.iter().enumerate();
                *column = times
                    .map(|(row, ns)| ns.filter(|_| impossible.binary_search(&row).is_err()))
                    .collect();
            }
        }
        rows
    }
}

/// Fragments of a routine. A fragment is a part that no other routine interrupted.
#[derive(Clone, Copy, Debug)]
struct Fragments {
    count: u32,
    sum_ns: i64,
    longest_ns: i64,
}

/// Computes the fragments of a routine, and removes the nested routines from `ended`.
///
/// Rows are in the order in which routines ended. Therefore the nested routines of a row are directly before
/// the row. They are the rows that do not start earlier than the row.
fn fragments(ended: &mut Vec<EndedRoutine>, whole: EndedRoutine) -> Fragments {
    let mut fragments = Fragments {
        count: 0,
        sum_ns: 0,
        longest_ns: 0,
    };
    let mut until = whole.end_ns;
    let mut add = |from: i64, until: i64| {
        let length = until.saturating_sub(from).max(0);
        fragments.count = fragments.count.saturating_add(u32::from(length > 0));
        fragments.sum_ns = fragments.sum_ns.saturating_add(length);
        fragments.longest_ns = fragments.longest_ns.max(length);
    };
    while let Some(inner) = ended.pop_if(|inner| inner.start_ns >= whole.start_ns) {
        add(inner.end_ns, until);
        until = inner.start_ns.min(until);
    }
    add(whole.start_ns, until);
    // Even a routine that is shorter than the clock's resolution has one fragment.
    fragments.count = fragments.count.max(1);
    if ended.len() >= REMEMBERED {
        ended.drain(..REMEMBERED / 2);
    }
    ended.push(whole);
    fragments
}
