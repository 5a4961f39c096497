//! `interrupts`: service routines and deferred procedure calls.

use etl::Event;
use events::kernel::{Interrupt, InterruptKind};

use crate::column::{Named, Names, Nullable};
use crate::schema::table;

table! {
    /// One row per run of an interrupt service routine or a deferred procedure call (DPC).
    ///
    /// They are logged when they end, so rows are sorted by `end_ns`. They nest: an interrupt's
    /// routine can run inside a DPC or another routine of the same CPU.
    Interrupts, InterruptsView = "interrupts" sorted by end_ns {
        /// When the routine began; unknown if the event's time makes no sense: it is after the end,
        /// or a DPC ended since, for which nothing of this kind is left.
        start_ns: Nullable<i64> = "InitialTime" wpa "Enter Time (s)",
        /// When it ended.
        end_ns: Vec<i64> = "header time" wpa "Exit Time (s)",
        /// The CPU.
        cpu: Vec<u16> = "CPU of the buffer" wpa "CPU",
        /// What ran: `dpc`, `threaded_dpc`, `timer_dpc`, `io_timer`, `isr`, `msi` (service routine
        /// of a message-signalled interrupt) or `passive_isr`.
        kind: Names<InterruptKind> =
            "PerfInfo DPC, ThreadedDPC, TimerDPC, IoTimer, ISR, ISR-MSI, ISR-Passive"
            wpa "DPC Type, Type",
        /// Address of the routine.
        routine: Vec<u64> = "Routine" wpa "Address",
        /// From begin to end, with everything that interrupted it.
        duration_ns: Nullable<i64> = "header time - InitialTime" wpa "Inclusive Duration",
        /// The duration without the routines that ran inside it on the same CPU. Preemption of
        /// `threaded_dpc` and `passive_isr`, which run in threads, is not taken off.
        exclusive_ns: Nullable<i64> = "duration_ns less nested rows of the CPU"
            wpa "Exclusive Duration",
        /// Into how many pieces other routines cut it; `exclusive_ns / fragments` is the mean of
        /// WPA's rows.
        fragments: Nullable<u32> = "1 and one for each nested row of the CPU within it"
            wpa "Count (Fragments)",
        /// Its longest piece.
        longest_fragment_ns: Nullable<i64> = "exclusive_ns, piece by piece"
            wpa "Duration (Fragmented)",
        /// Row in `images` of the kernel module that the routine is in.
        image_row: Nullable<u32> = "routine and start_ns in `images`" wpa "Module",
        /// Service routines since Windows Vista: the interrupt vector.
        vector: Nullable<u16> = "Vector",
        /// Service routines: 1 if the routine claimed the interrupt.
        return_value: Nullable<u32> = "ReturnValue",
        /// `msi`: the number of the message.
        message_number: Nullable<u32> = "MessageNumber",
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
        match self {
            InterruptKind::Dpc => 0,
            InterruptKind::ThreadedDpc => 1,
            InterruptKind::TimerDpc => 2,
            InterruptKind::IoTimer => 3,
            InterruptKind::Isr => 4,
            InterruptKind::MessageIsr => 5,
            InterruptKind::PassiveIsr => 6,
        }
    }
}

impl Interrupts {
    /// Adds a row; `None` if the payload is unreadable.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
        let interrupt = Interrupt::read(
            event.opcode()?,
            event.payload(),
            event.version()?,
            event.pointer_size(),
        )?;
        let end = event.time_ns();
        let start = crate::time::since(event, interrupt.initial_time);
        self.start_ns.push(start);
        self.end_ns.push(end);
        self.cpu.push(event.cpu());
        self.kind.0.push(interrupt.kind);
        self.routine.push(interrupt.routine);
        self.duration_ns
            .push(start.map(|start| end.saturating_sub(start)));
        self.vector.push(interrupt.vector);
        self.return_value.push(interrupt.return_value);
        self.message_number.push(interrupt.message_number);
        Some(())
    }
}
