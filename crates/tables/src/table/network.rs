//! `network`: TCP and UDP traffic.

use std::ops::RangeInclusive;

use etl::Event;
use events::ids::hook;
use events::kernel::{NetworkAction, NetworkEvent};

use crate::column::{Named, Names, Nullable, Text};
use crate::providers::KERNEL_NETWORK;
use crate::register::{EventTable, Incoming, Reader, Reads, Register};
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

/// Hook group of the kernel's UDP events.
const UDP_GROUP: u8 = 0x08;

/// Difference between Kernel-Network's ids of UDP events and the kernel's opcodes.
const UDP_IDS: u16 = 32;

/// Ids of Kernel-Network events. The first ranges are TCP over IPv4 and IPv6. The next ranges are UDP over
/// IPv4 and IPv6.
const PROVIDER_IDS: &[RangeInclusive<u16>] = &[
    10..=16,
    18..=18,
    26..=32,
    34..=34,
    42..=48,
    50..=50,
    58..=64,
    66..=66,
];

/// Layout version of Kernel-Network's events. The version in the events is ignored.
const PROVIDER_LAYOUT: u8 = 2;

impl Register for Network {
    const READS: Reads = Reads {
        hooks: &[
            hook::TCP_SEND_IPV4..=hook::TCP_RECONNECT_IPV4,
            hook::TCP_COPY_IPV4..=hook::TCP_COPY_IPV4,
            hook::TCP_SEND_IPV6..=hook::TCP_RECONNECT_IPV6,
            hook::TCP_COPY_IPV6..=hook::TCP_COPY_IPV6,
            hook::UDP_SEND_IPV4..=hook::UDP_RECEIVE_IPV4,
            hook::UDP_SEND_IPV6..=hook::UDP_RECEIVE_IPV6,
        ],
        providers: &[(KERNEL_NETWORK, PROVIDER_IDS)],
        ..Reads::NOTHING
    };
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

impl EventTable for Network {
    type Raw = Network;
    type State = ();

    /// Adds an event. Kernel events older than version 2 are refused.
    fn push(raw: &mut Network, incoming: &Incoming<'_, '_>) -> Option<()> {
        let event = incoming.event;
        if let Some(hook) = incoming.hook {
            let [group, opcode] = hook.to_be_bytes();
            let transport = match group {
                UDP_GROUP => Transport::Udp,
                _ => Transport::Tcp,
            };
            let version = event.version()?;
            return raw.push(transport, opcode, version, NetworkSource::Kernel, event);
        }
        let id = event.descriptor()?.id;
        let (transport, opcode) = match id {
            42.. => (Transport::Udp, id - UDP_IDS),
            _ => (Transport::Tcp, id),
        };
        let opcode = u8::try_from(opcode).ok()?;
        let source = NetworkSource::Provider;
        raw.push(transport, opcode, PROVIDER_LAYOUT, source, event)
    }

    fn join(raw: &mut Network, (): &mut (), trackers: &Trackers<'_>) -> Network {
        let mut rows = std::mem::take(raw);
        rows.process_row = trackers.process_rows(&rows.process_id, &rows.time_ns);
        rows
    }
}

impl Network {
    fn push(
        &mut self,
        transport: Transport,
        opcode: u8,
        version: u8,
        source: NetworkSource,
        event: &Event<'_>,
    ) -> Option<()> {
        let (payload, width) = (event.payload(), event.pointer_size());
        let traffic = match transport {
            Transport::Tcp => NetworkEvent::read_tcp(opcode, payload, version, width)?,
            Transport::Udp => NetworkEvent::read_udp(opcode, payload, version, width)?,
        };
        // In TCP events, the destination is always the other machine. In UDP events, the
        // destination is the receiver.
        let is_received = traffic.action == NetworkAction::Receive;
        let (local, remote) = match (transport, is_received) {
            (Transport::Udp, true) => (traffic.destination, traffic.source),
            _ => (traffic.source, traffic.destination),
        };
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.action.0.push(traffic.action);
        self.transport.0.push(transport);
        self.source.0.push(source);
        self.process_id.push(traffic.process_id);
        self.size_bytes.push(traffic.size);
        self.local_address.push(Some(&local.ip().to_string()));
        self.local_port.push(local.port());
        self.remote_address.push(Some(&remote.ip().to_string()));
        self.remote_port.push(remote.port());
        self.sequence.push(traffic.sequence);
        self.connection.push(traffic.connection);
        Some(())
    }
}
