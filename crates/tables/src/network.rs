//! `network`: what TCP and UDP sent and received.

use etl::Event;
use events::kernel::{NetworkAction, NetworkEvent};

use crate::column::{Named, Names, Nullable, Text};
use crate::join::Join;
use crate::schema::table;
use crate::world::World;

table! {
    /// One row per event of TCP or UDP: data sent, received or sent again, connections opened and
    /// closed. Sizes are of data, not of packets; see `packets` for those.
    ///
    /// The kernel's own events and those of the provider Kernel-Network tell the same; a trace that
    /// has both has every row twice.
    Network, NetworkView = "network" sorted by time_ns {
        /// When it was logged.
        time_ns: Vec<i64> = "header time",
        /// The CPU that logged it.
        cpu: Vec<u16> = "CPU of the buffer",
        /// What happened: `send`, `receive`, `connect`, `disconnect`, `retransmit`, `accept`,
        /// `reconnect`, or `copy` (data handed to the application).
        action: Names<NetworkAction> = "opcode",
        /// `tcp` or `udp`.
        transport: Names<Transport> = "TcpIp, UdpIp; Kernel-Network: id",
        /// Who tells: `kernel` or `provider`.
        source: Names<NetworkSource> = "TcpIp, UdpIp; Kernel-Network",
        /// The process whose traffic it is.
        process_id: Vec<u32> = "PID" wpa "Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Data.
        size_bytes: Vec<u32> = "size",
        /// IP address of this machine.
        local_address: Text = "TCP, and UDP sent: saddr; UDP received: daddr",
        /// Port of this machine.
        local_port: Vec<u16> = "TCP, and UDP sent: sport; UDP received: dport",
        /// IP address of the other end.
        remote_address: Text = "TCP, and UDP sent: daddr; UDP received: saddr",
        /// Port of the other end.
        remote_port: Vec<u16> = "TCP, and UDP sent: dport; UDP received: sport",
        /// Sequence number, as far as the system fills it.
        sequence: Vec<u32> = "seqnum",
        /// Tells connections apart, as far as the system fills it.
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

/// The protocol.
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

/// Who tells of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkSource {
    /// The kernel's own classes.
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

/// The group of the kernel's UDP events.
const UDP_GROUP: u8 = 0x08;

/// By how much Kernel-Network's ids of UDP events are above the kernel's opcodes.
const UDP_IDS: u16 = 32;

/// The version of the layout that Kernel-Network's events have, whatever they say.
const PROVIDER_LAYOUT: u8 = 2;

/// Whether Kernel-Network's events of that id are rows.
pub(crate) fn is_network(id: u16) -> bool {
    let opcode = id.checked_sub(UDP_IDS).filter(|_| id >= 42).unwrap_or(id);
    matches!(opcode, 10..=16 | 18 | 26..=32 | 34)
}

impl Network {
    /// Adds a row of a kernel event; `None` if the payload is unreadable or older than version 2.
    pub(crate) fn push_kernel(&mut self, hook: u16, event: &Event<'_>) -> Option<()> {
        let [group, opcode] = hook.to_be_bytes();
        let transport = match group {
            UDP_GROUP => Transport::Udp,
            _ => Transport::Tcp,
        };
        let source = NetworkSource::Kernel;
        self.push(transport, opcode, event.version()?, source, event)
    }

    /// Adds a row of an event of Kernel-Network; `None` if the payload is unreadable.
    pub(crate) fn push_provider(&mut self, event: &Event<'_>) -> Option<()> {
        let id = event.descriptor()?.id;
        let (transport, opcode) = match id {
            42.. => (Transport::Udp, id - UDP_IDS),
            _ => (Transport::Tcp, id),
        };
        let opcode = u8::try_from(opcode).ok()?;
        let source = NetworkSource::Provider;
        self.push(transport, opcode, PROVIDER_LAYOUT, source, event)
    }

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
        // TCP calls the remote end the destination, whatever way data goes; UDP does not.
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

impl Join for Network {
    type State = ();

    fn join(&mut self, (): &mut (), world: &World<'_>) {
        self.process_row = world.process_rows(&self.process_id, &self.time_ns);
    }
}
