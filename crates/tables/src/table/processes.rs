//! `processes`: processes and their lifetimes.

use crate::column::{Nullable, Text};
use crate::register::Register;
use crate::schema::table;

table! {
    /// One row per process. Process ids are reused, so several rows can have the same `process_id`.
    ///
    /// If a process already existed when the trace began, its `start_ns` is null. If it still existed when
    /// the trace ended, its `end_ns` is null. Such processes are known from the rundown (the list of existing
    /// processes) at the trace's start or end.
    Processes, ProcessesView = "processes" sorted by first_seen_ns
        title "Process Lifetimes"
        record "processes (xperf -on PROC_THREAD, WPR keyword ProcessThread)"
        lives start_ns to end_ns
    {
        /// Time of the first event about the process.
        first_seen_ns: Vec<i64> = "first event: header time",
        /// Start of the process; null if the process started before the trace.
        start_ns: Nullable<i64> = "Process Start: header time" wpa "Start Time (s)",
        /// End of the process; null if the process ended after the trace.
        end_ns: Nullable<i64> = "Process End: header time; Defunct: ExitTime" wpa "End Time (s)",
        /// End of the last thread of the process. It is shortly before the end of the process.
        last_thread_end_ns: Nullable<i64> = "Process Terminate: header time",
        /// Id of the process.
        process_id: Vec<u32> = "ProcessId" wpa "Process Id",
        /// Id of the process that created this process.
        parent_id: Vec<u32> = "ParentId" wpa "Parent Process Id",
        /// Id of the terminal session; null for processes of the system.
        session_id: Nullable<u32> = "SessionId" wpa "Session Id",
        /// File name of the image. Windows versions before 8 cut the name to 14 or 15 characters.
        image_name: Text = "ImageFileName" wpa "Process Name",
        /// Command line of the process.
        command_line: Text = "CommandLine" wpa "Command Line",
        /// Path of the control group (cgroup) of a process of Linux. If the CPU controller has version 1, this is the path in
        /// its hierarchy; otherwise, the path in the hierarchy of version 2.
        cgroup: Text = "/proc/PID/cgroup",
        /// Full name of the package that the process belongs to.
        package_full_name: Text = "PackageFullName",
        /// Application id of the process within its package.
        application_id: Text = "ApplicationId",
        /// Security identifier (SID) of the user, in the form `S-1-5-…`.
        user_sid: Text = "UserSID",
        /// Flags: 1 has a package, 2 WOW64, 4 protected, 8 packaged.
        flags: Nullable<u32> = "Flags",
        /// Exit status of the process.
        exit_status: Nullable<i32> = "Process End: ExitStatus",
        /// Address of the kernel's process object.
        unique_key: Nullable<u64> = "UniqueProcessKey",
        /// Physical address of the process's page tables.
        directory_table_base: Nullable<u64> = "DirectoryTableBase",
        /// Time at which the process object was freed. The object is freed after its last handle was closed.
        /// Known only if the object was freed long after the end of the process.
        defunct_ns: Nullable<i64> = "Process Defunct: header time",
    }
}

impl Register for Processes {}
