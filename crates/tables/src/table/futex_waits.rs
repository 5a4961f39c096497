//! `futex_waits`: calls with which threads of Linux wait for a lock of their program.

use std::num::NonZeroU64;

use crate::column::{Named, Names, Nullable};
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::trackers::{ThreadFinder, Trackers};
use crate::wait_kind::{FutexCall, WaitKind};

table! {
    /// One row per call of a thread of Linux that waits for a futex: a lock, a condition variable or another object in
    /// the memory of its program. If the value of the object differs from the expected one, the call returns without a
    /// wait.
    FutexWaits, FutexWaitsView = "futex_waits" sorted by time_ns
        title "Waits for Futexes"
        record "calls of futex (perf record -e syscalls:sys_enter_futex)"
    {
        /// Time of the call.
        time_ns: Vec<i64> = "Linux syscalls: sys_enter_futex",
        /// CPU on which the thread ran.
        cpu: Vec<u16> = "CPU of the event",
        /// Kind of wait: `wait`, or `lock` if the lock has priority inheritance: its holder gets the priority of the
        /// thread that waits.
        kind: Names<FutexWait> = "op",
        /// Thread that waits.
        thread_id: Vec<u32> = "common_pid",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process of the thread.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Address of the object in the memory of the program.
        address: Vec<u64> = "uaddr",
        /// Value that the object has while the thread waits. Mutexes of glibc, Rust and Go have the value 2 while
        /// threads wait for them.
        value: Vec<u32> = "val",
    }
}

/// Kind of a wait for a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FutexWait {
    /// Wait until another thread wakes this one.
    Wait,
    /// Wait for a lock with priority inheritance.
    Lock,
}

impl Named for FutexWait {
    const NAMES: &'static [&'static str] = &["wait", "lock"];

    fn code(self) -> i8 {
        self as i8
    }
}

impl FutexWait {
    /// Returns the kind of an operation; `None` if the operation does not wait. Source: `include/uapi/linux/futex.h`.
    fn from_operation(operation: u32) -> Option<FutexWait> {
        /// `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`.
        const FLAGS: u32 = 128 | 256;
        match operation & !FLAGS {
            // FUTEX_WAIT, FUTEX_WAIT_BITSET
            0 | 9 => Some(FutexWait::Wait),
            // FUTEX_LOCK_PI, FUTEX_LOCK_PI2
            6 | 13 => Some(FutexWait::Lock),
            _ => None,
        }
    }
}

/// Value of a mutex of glibc, Rust and Go while threads wait for it.
const CONTENDED: u32 = 2;

impl FutexCall {
    /// Creates a call. Returns `None` if the operation does not wait.
    pub fn new(address: u64, operation: u32, value: u32) -> Option<FutexCall> {
        let kind = match FutexWait::from_operation(operation)? {
            FutexWait::Wait if value != CONTENDED => WaitKind::Futex,
            FutexWait::Wait | FutexWait::Lock => WaitKind::Lock,
        };
        let address = NonZeroU64::new(address)?;
        Some(FutexCall { kind, address })
    }
}

impl Register for FutexWaits {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
    ];
}

impl EventTable for FutexWaits {
    type Raw = FutexWaits;
    type State = ThreadFinder;

    fn join(
        raw: &mut FutexWaits,
        threads: &mut ThreadFinder,
        trackers: &Trackers<'_>,
    ) -> FutexWaits {
        let mut rows = std::mem::take(raw);
        (rows.thread_row, rows.process_id, rows.process_row) =
            threads.find_columns(trackers, &rows.thread_id, &rows.time_ns);
        rows
    }
}

impl FutexWaits {
    /// Adds a row, except for the columns that refer to other tables. Adds no row if the operation does not wait.
    pub fn push(
        &mut self,
        (time_ns, cpu): (i64, u16),
        thread_id: u32,
        address: u64,
        operation: u32,
        value: u32,
    ) {
        if let Some(kind) = FutexWait::from_operation(operation) {
            self.time_ns.push(time_ns);
            self.cpu.push(cpu);
            self.kind.0.push(kind);
            self.thread_id.push(thread_id);
            self.address.push(address);
            self.value.push(value);
        }
    }
}
