//! Functions that build the data of extended items, for [`super::ProviderEvent::extended`].

use super::payload::Payload;
use crate::guid::Guid;

/// Returns the data of a [`crate::ext_type::STACK_TRACE_64`] item: return addresses, innermost call first. If
/// the kernel part and the user part of a stack are logged in two events, both events have the same nonzero
/// `match_id`.
pub fn stack_trace_64(match_id: u64, addresses: &[u64]) -> Payload {
    let mut data = Payload::new();
    data.u64(match_id);
    for address in addresses {
        data.u64(*address);
    }
    data
}

/// Returns the data of a [`crate::ext_type::SID`] item: a security identifier of revision 1. For
/// example, `S-1-5-18` has the authority 5 and the sub-authority 18.
///
/// # Panics
/// Panics if there are more than 15 sub-authorities.
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

/// Returns the data of a [`crate::ext_type::RELATED_ACTIVITY_ID`] item.
pub fn related_activity(id: Guid) -> Payload {
    let mut data = Payload::new();
    data.guid(id);
    data
}
