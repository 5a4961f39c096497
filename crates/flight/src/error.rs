//! Reasons why this machine cannot record.

use std::io;

/// Error of starting a recorder.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The caller lacks the necessary rights. The text names the refused operation.
    #[error(
        "cannot record events of the kernel: {0}: permission denied; run as root, or give the program the rights with \
         `setcap cap_perfmon,cap_ipc_lock,cap_dac_read_search=ep`. Without them, `laglab measure sleep --why` still \
         shows how long late sleeps waited for a CPU, but not which threads held it"
    )]
    Rights(String),
    /// The descriptions of tracepoints cannot be found.
    #[error(
        "cannot record events of the kernel: there is no tracefs: {0}; mount it with `mount -t tracefs nodev \
         /sys/kernel/tracing`, or use a kernel with CONFIG_TRACING"
    )]
    NoTracefs(io::Error),
    /// The kernel lacks the events that every recording needs.
    #[error(
        "cannot record events of the kernel: {0}; all recordings need the tracepoints sched_switch and sched_waking \
         (CONFIG_PERF_EVENTS, CONFIG_TRACEPOINTS)"
    )]
    Kernel(String),
    /// The system refused another operation.
    #[error(
        "cannot record events of the kernel: {what}: {why}; record fewer events or use smaller buffers"
    )]
    System {
        /// Refused operation.
        what: &'static str,
        /// Error of the system.
        why: io::Error,
    },
}

/// Event that a recorder left out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MissingEvent {
    /// Name of the event, as in `perf list`.
    pub event: String,
    /// Reason why the recorder left out the event.
    pub why: String,
}
