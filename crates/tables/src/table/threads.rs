//! `threads`: threads and their lifetimes.

use crate::column::{Nullable, Text};
use crate::register::Register;
use crate::schema::table;

table! {
    /// One row per thread. Thread ids are reused, so several rows can have the same `thread_id`.
    ///
    /// If a thread already existed when the trace began, its `start_ns` is null. If it still existed when the
    /// trace ended, its `end_ns` is null. Addresses and priorities come from the first event about the
    /// thread.
    Threads, ThreadsView = "threads" sorted by first_seen_ns
        title "Thread Lifetimes"
        record "threads (xperf -on PROC_THREAD, WPR keyword ProcessThread)"
        lives start_ns to end_ns
    {
        /// Time of the first event about the thread.
        first_seen_ns: Vec<i64> = "first event: header time",
        /// Start of the thread; null if the thread started before the trace.
        start_ns: Nullable<i64> = "Thread Start: header time",
        /// End of the thread; null if the thread ended after the trace.
        end_ns: Nullable<i64> = "Thread End: header time",
        /// Id of the thread.
        thread_id: Vec<u32> = "TThreadId" wpa "Thread Id",
        /// Process of the thread; null if it is unknown.
        process_id: Nullable<u32> = "ProcessId" wpa "Process Id",
        /// Thread that started this thread.
        creator_thread_id: Nullable<u32> = "Thread Start: header thread",
        /// Process of the thread that started this thread.
        creator_process_id: Nullable<u32> = "Thread Start: header process",
        /// Name of the thread. Present since Windows 10.
        name: Text = "ThreadName; SetName" wpa "Thread Name",
        /// Start address of the thread's own code.
        win32_start_address: Nullable<u64> = "Win32StartAddr",
        /// Address at which the kernel started the thread. Present only before Windows 8.
        start_address: Nullable<u64> = "StartAddr",
        /// CPUs on which the thread may run, as a bit mask. The CPUs belong to the thread's processor group.
        /// Present since version 3 (Windows 7).
        affinity: Nullable<u64> = "Affinity",
        /// Base address of the kernel stack.
        stack_base: Nullable<u64> = "StackBase",
        /// Limit address of the kernel stack.
        stack_limit: Nullable<u64> = "StackLimit",
        /// Base address of the user stack.
        user_stack_base: Nullable<u64> = "UserStackBase",
        /// Limit address of the user stack.
        user_stack_limit: Nullable<u64> = "UserStackLimit",
        /// Address of the thread environment block (TEB).
        teb: Nullable<u64> = "TebBase",
        /// Tag of the service that the thread works for; 0 if the thread works for no service.
        sub_process_tag: Nullable<u32> = "SubProcessTag",
        /// Name of the service that the thread works for.
        service: Text = "Services: ServiceName, by ProcessId and SubProcessTag",
        /// Scheduling policy of a thread of Linux: other, batch, idle (each of them fair), fifo, rr (each of them real time),
        /// deadline or ext.
        policy: Text = "/proc/PID/task/TID/stat: policy",
        /// Nice value of a thread of Linux, −20 to 19. Real-time threads have it, but do not use it.
        nice: Nullable<i8> = "/proc/PID/task/TID/stat: nice",
        /// Base priority, 0 to 31.
        base_priority: Nullable<u8> = "BasePriority",
        /// Priority of memory pages, 0 to 7.
        page_priority: Nullable<u8> = "PagePriority",
        /// I/O priority: 0 very low, 1 low, 2 normal, 3 high, 4 critical.
        io_priority: Nullable<u8> = "IoPriority",
    }
}

impl Register for Threads {}
