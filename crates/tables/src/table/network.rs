//! `network`: TCP and UDP traffic.

use rules::kinds::NetworkAction;

use crate::column::{Named, Names, Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::trackers::Trackers;

table! {
    /// One row per event of TCP or UDP: data was sent, received or retransmitted, or a connection was opened
    /// or closed. `size_bytes` is the size of the data, not of the packets. The table `packets` has the
    /// packets.
    ///
    /// The events of the kernel and the events of the provider Kernel-Network report the same traffic. If a
    /// trace has both kinds of events, every row occurs twice.
    Network, NetworkView = "network" sorted by time_ns
        title "Network (TCP and UDP)"
        record "network events (xperf -on NETWORKTRACE, WPR keyword NetworkTrace)"
    {
        /// Time of the event.
        time_ns: Vec<i64> = "header time",
        /// CPU that logged the event.
        cpu: Vec<u16> = "CPU of the buffer",
        /// Action: `send`, `receive`, `connect`, `disconnect`, `retransmit`, `accept`, `reconnect`, or `copy`
        /// (received data was passed to the application).
        action: Names<NetworkAction> = "opcode",
        /// Protocol: `tcp` or `udp`.
        transport: Names<Transport> = "TcpIp, UdpIp; Kernel-Network: id",
        /// Source of the event: `kernel` (event classes of the kernel) or `provider` (Kernel-Network).
        source: Names<NetworkSource> = "TcpIp, UdpIp; Kernel-Network",
        /// Process that sends or receives.
        process_id: Vec<u32> = "PID" wpa "Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Number of data bytes.
        size_bytes: Vec<u32> = "size",
        /// IP address of this machine.
        local_address: Text = "TCP, and UDP sent: saddr; UDP received: daddr",
        /// Port of this machine.
        local_port: Vec<u16> = "TCP, and UDP sent: sport; UDP received: dport",
        /// IP address of the other machine.
        remote_address: Text = "TCP, and UDP sent: daddr; UDP received: saddr",
        /// Port of the other machine.
        remote_port: Vec<u16> = "TCP, and UDP sent: dport; UDP received: sport",
        /// Sequence number, if the system sets it.
        sequence: Vec<u32> = "seqnum",
        /// Identifier of the connection, if the system sets it.
        connection: Vec<u64> = "connid",
    }
}

impl Named for NetworkAction {
    const NAMES: &'static [&'static str] = &[
        "send",
        "receive",
        "connect",
        "disconnect",
        "retransmit",
        "accept",
        "reconnect",
        "copy",
    ];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Transmission control protocol.
    Tcp,
    /// User datagram protocol.
    Udp,
}

impl Named for Transport {
    const NAMES: &'static [&'static str] = &["tcp", "udp"];

    fn code(self) -> i8 {
        self as i8
    }
}

/// Source of a network event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkSource {
    /// Event classes of the kernel.
    Kernel,
    /// The provider Kernel-Network.
    Provider,
}

impl Named for NetworkSource {
    const NAMES: &'static [&'static str] = &["kernel", "provider"];

    fn code(self) -> i8 {
        self as i8
    }
}

impl Register for Network {
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

impl EventTable for Network {
    type Raw = Network;
    type State = ();

    fn join(raw: &mut Network, (): &mut (), trackers: &Trackers<'_>) -> Network {
        let mut rows = std::mem::take(raw);
        rows.process_row = trackers.process_rows(&rows.process_id, &rows.time_ns);
        rows
    }
}
