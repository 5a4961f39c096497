//! Which events of manifest providers become rows of tables of their own.

use etl::{Event, Guid};
use events::{Fields, Value, built_in};

use crate::Table;
use crate::kept::KeptEvent;
use crate::network::is_network;

pub(crate) const WIN32K: Guid = guid(0x8c416c79_d49b_4f01_a467_e56d3aa8234c);
pub(crate) const KERNEL_PROCESS: Guid = guid(0x22fb2cd6_0e7b_422b_a0c7_2fad1fd0e716);
pub(crate) const KERNEL_POWER: Guid = guid(0x331c3b3a_2005_44c2_ac5e_77220c37d6b4);
pub(crate) const KERNEL_NETWORK: Guid = guid(0x7dd42a49_5329_4832_8dfd_43d979153a88);
pub(crate) const NDIS_PACKET_CAPTURE: Guid = guid(0x2ed6006e_4729_4609_b423_3ee7bcd678ef);
pub(crate) const PKTMON: Guid = guid(0x4d4f80d9_c8bd_4d73_bb5b_19c90402c5ac);
/// UIforETW's providers, by their names in its manifest.
pub(crate) const MULTI_MAIN: Guid = guid(0x231cf54b_22a0_49e4_a59a_47052a30ffed);
pub(crate) const MULTI_WORKER: Guid = guid(0xe9c3da11_e2a5_48fd_9cd3_17e7c764d303);
pub(crate) const MULTI_INPUT: Guid = guid(0x70e2503b_c6f3_4780_b323_bd8ed0c61bf8);
/// `laglab record input`'s, made of its name as TraceLogging does.
pub(crate) const LAGLAB_INPUT: Guid = guid(0xcc034ed5_a9f4_5c52_dfab_c2b323286686);

/// A GUID from its digits in the order in which they are written.
const fn guid(digits: u128) -> Guid {
    let [a, b, c, d, rest @ ..] = digits.to_be_bytes();
    let [e, f, g, h, tail @ ..] = rest;
    Guid::new(
        u32::from_be_bytes([a, b, c, d]),
        u16::from_be_bytes([e, f]),
        u16::from_be_bytes([g, h]),
        tail,
    )
}

/// The table that an event of a provider is a row of, or makes rows of with others.
#[inline]
pub(crate) fn table_of(provider: Guid, id: u16) -> Option<Table> {
    Some(match (provider, id) {
        (WIN32K, 26 | 258 | 259) => Table::Focus,
        (WIN32K, 63 | 72 | 73 | 79..=82 | 88 | 92 | 93) | (MULTI_INPUT, 400..=404) => Table::Input,
        (LAGLAB_INPUT, 1) => Table::Input,
        (KERNEL_PROCESS, 11 | 12) => Table::ProcessFreezes,
        (KERNEL_PROCESS, 7..=10) => Table::Priorities,
        (KERNEL_NETWORK, id) if is_network(id) => Table::Network,
        (KERNEL_POWER, 63 | 95) => Table::TimerRequests,
        (MULTI_MAIN, 102 | 104..=107 | 114 | 116..=119) | (MULTI_WORKER, 102) => Table::Marks,
        (NDIS_PACKET_CAPTURE, 1001) | (PKTMON, 160 | 170) => Table::Packets,
        _ => return None,
    })
}

/// The fields of an event, by the layout that is publicly known; `None` if there is none or the
/// payload is too short for it.
pub(crate) fn fields<'e>(provider: Guid, event: &Event<'e>) -> Option<Fields<'e>> {
    let descriptor = event.descriptor()?;
    let (payload, width) = (event.payload(), event.pointer_size());
    decode(provider, descriptor.id, descriptor.version, payload, width)
}

/// The same of a kept event.
pub(crate) fn kept_fields<'e>(provider: Guid, event: &KeptEvent<'e>) -> Option<Fields<'e>> {
    let (payload, width) = (event.payload, event.pointer_size);
    decode(provider, event.id, event.version, payload, width)
}

fn decode(
    provider: Guid,
    id: u16,
    version: u8,
    payload: &[u8],
    pointer_size: usize,
) -> Option<Fields<'_>> {
    let schema = built_in::schema(provider, id, version)?;
    let fields = events::decode(&schema.fields, payload, pointer_size);
    fields.truncated.is_none().then_some(fields)
}

/// A number that fits into 32 bits.
pub(crate) fn number(fields: &Fields<'_>, name: &str) -> Option<u32> {
    u32::try_from(fields.get(name)?.as_u64()?).ok()
}

/// A number that may be negative.
pub(crate) fn signed(fields: &Fields<'_>, name: &str) -> Option<i32> {
    match fields.get(name)? {
        Value::Int(value) => i32::try_from(*value).ok(),
        value => i32::try_from(value.as_u64()?).ok(),
    }
}

/// Text that says something.
pub(crate) fn text<'f>(fields: &'f Fields<'_>, name: &str) -> Option<&'f str> {
    fields.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The logging thread and process, as far as the header knows them.
pub(crate) fn logged_by(event: &Event<'_>) -> (Option<u32>, Option<u32>) {
    let known = |id: Option<u32>| id.filter(|id| *id != u32::MAX);
    (known(event.thread_id()), known(event.process_id()))
}
