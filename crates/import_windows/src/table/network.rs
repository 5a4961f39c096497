//! `network`: TCP and UDP traffic.

use std::ops::RangeInclusive;

use etl::Event;
use events::ids::hook;
use events::kernel::NetworkEvent;
use tables::{Network, NetworkAction, NetworkSource, Transport};

use crate::providers::KERNEL_NETWORK;
use crate::register::{FromEvents, IncomingEvent, Reads};

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

impl FromEvents for Network {
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

    /// Adds an event. Kernel events older than version 2 are refused.
    fn push(raw: &mut Network, incoming: &IncomingEvent<'_, '_>) -> Option<()> {
        let event = incoming.event;
        if let Some(hook) = incoming.hook {
            let [group, opcode] = hook.to_be_bytes();
            let transport = match group {
                UDP_GROUP => Transport::Udp,
                _ => Transport::Tcp,
            };
            let version = event.version()?;
            return push(
                raw,
                transport,
                opcode,
                version,
                NetworkSource::Kernel,
                event,
            );
        }
        let id = event.descriptor()?.id;
        let (transport, opcode) = match id {
            42.. => (Transport::Udp, id - UDP_IDS),
            _ => (Transport::Tcp, id),
        };
        let opcode = u8::try_from(opcode).ok()?;
        let source = NetworkSource::Provider;
        push(raw, transport, opcode, PROVIDER_LAYOUT, source, event)
    }
}

fn push(
    rows: &mut Network,
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
    rows.time_ns.push(event.time_ns());
    rows.cpu.push(event.cpu());
    rows.action.0.push(traffic.action);
    rows.transport.0.push(transport);
    rows.source.0.push(source);
    rows.process_id.push(traffic.process_id);
    rows.size_bytes.push(traffic.size);
    rows.local_address.push(Some(&local.ip().to_string()));
    rows.local_port.push(local.port());
    rows.remote_address.push(Some(&remote.ip().to_string()));
    rows.remote_port.push(remote.port());
    rows.sequence.push(traffic.sequence);
    rows.connection.push(traffic.connection);
    Some(())
}
