//! `ready_threads`: waiting threads becoming ready to run.

use etl::Event;
use events::kernel::ReadyThread;

use crate::column::Nullable;
use crate::schema::table;

table! {
    /// One row per thread made ready: from now on it waits for a CPU, not for what it waited for.
    ///
    /// The readying thread is the one running on `cpu`, or a DPC if `by_dpc`.
    ReadyThreads, ReadyThreadsView = "ready_threads" sorted by time_ns {
        /// When the thread became ready.
        time_ns: Vec<i64> = "ReadyThread: header time" wpa "Ready Time (s)",
        /// The CPU that made it ready.
        cpu: Vec<u16> = "ReadyThread: CPU of the buffer",
        /// The thread that became ready.
        thread_id: Vec<u32> = "ReadyThread: TThreadId" wpa "New Thread Id",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Its process; 0 of idle threads.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`" wpa "New Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// The thread that ran on the CPU: it made the thread ready, unless a DPC did.
        readying_thread_id: Nullable<u32> = "the thread running on the CPU"
            wpa "Readying Thread Id",
        /// Row of the readying thread in `threads`.
        readying_thread_row: Nullable<u32> = "readying_thread_id and time_ns in `threads`",
        /// The process of the readying thread.
        readying_process_id: Nullable<u32> = "readying_thread_id and time_ns in `threads`"
            wpa "Readying Process Id",
        /// Row of the process of the readying thread in `processes`.
        readying_process_row: Nullable<u32> = "readying_process_id and time_ns in `processes`",
        /// The stack of whoever made it ready.
        stack_id: Nullable<u32> = "the stack of the ReadyThread" wpa "Ready Thread Stack",
        /// Why its priority is adjusted: 0 not at all, 1 end of a wait, 2 boost.
        adjust_reason: Vec<u8> = "ReadyThread: AdjustReason" wpa "Adjust Reason",
        /// By how much its priority is raised.
        adjust_increment: Vec<i8> = "ReadyThread: AdjustIncrement" wpa "Adjust Increment",
        /// A DPC made it ready, not the thread running on the CPU.
        by_dpc: Vec<bool> = "ReadyThread: Flag bit 0" wpa "Ready Thread In DPC",
        /// Its kernel stack is paged out and must be read first.
        kernel_stack_not_resident: Vec<bool> = "ReadyThread: Flag bit 1"
            wpa "Kernel Stack Not Resident",
        /// Its process is swapped out and must be brought in first.
        process_out_of_memory: Vec<bool> = "ReadyThread: Flag bit 2" wpa "Process Out Of Memory",
        /// The readying thread tried to hand its CPU over directly.
        direct_switch_attempt: Vec<bool> = "ReadyThread: Flag bit 3" wpa "Direct Switch Attempt",
    }
}

impl ReadyThreads {
    /// Adds a row; `None` if the payload is unreadable.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
        let ready = ReadyThread::read(event.payload(), event.version()?, event.pointer_size())?;
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.thread_id.push(ready.thread_id);
        self.adjust_reason.push(ready.adjust_reason);
        self.adjust_increment.push(ready.adjust_increment);
        self.by_dpc.push(ready.by_dpc());
        self.kernel_stack_not_resident
            .push(ready.kernel_stack_not_resident());
        self.process_out_of_memory
            .push(ready.process_out_of_memory());
        self.direct_switch_attempt
            .push(ready.direct_switch_attempt());
        Some(())
    }
}
