//! Data of extended items: the second halves of [`super::ProviderEvent::extended`].

use super::payload::Payload;
use crate::guid::Guid;

/// Data of a [`crate::ext_type::STACK_TRACE_64`]: return addresses from the innermost outwards. A
/// `match_id` other than 0 joins the kernel's and the user's part of one stack, which are logged
/// in two events.
pub fn stack_trace_64(match_id: u64, addresses: &[u64]) -> Payload {
    let mut data = Payload::new();
    data.u64(match_id);
    for address in addresses {
        data.u64(*address);
    }
    data
}

/// Data of a [`crate::ext_type::SID`]: a security identifier of revision 1. `S-1-5-18` has the
/// authority 5 and the one sub-authority 18.
///
/// # Panics
/// If there are more than 15 sub-authorities, which no SID has.
pub fn sid(authority: u64, sub_authorities: &[u32]) -> Payload {
    assert!(
        sub_authorities.len() <= 15,
        "a SID has at most 15 sub-authorities"
    );
    let mut data = Payload::new();
    data.u8(1).u8(sub_authorities.len() as u8);
    data.bytes(&authority.to_be_bytes()[2..]);
    for sub_authority in sub_authorities {
        data.u32(*sub_authority);
    }
    data
}

/// Data of a [`crate::ext_type::TERMINAL_SESSION`].
pub fn terminal_session(id: u32) -> Payload {
    let mut data = Payload::new();
    data.u32(id);
    data
}

/// Data of a [`crate::ext_type::RELATED_ACTIVITY_ID`].
pub fn related_activity(id: Guid) -> Payload {
    let mut data = Payload::new();
    data.guid(id);
    data
}

/// Data of a [`crate::ext_type::PROCESS_START_KEY`].
pub fn process_start_key(key: u64) -> Payload {
    let mut data = Payload::new();
    data.u64(key);
    data
}
