//! Security identifiers as payloads hold them.

use etl::le;

/// Bytes of the SID at the start of `bytes`: revision, count, authority and sub-authorities.
pub(crate) fn size(bytes: &[u8]) -> Option<usize> {
    Some(8 + 4 * usize::from(*bytes.get(1)?))
}

/// Splits a TOKEN_USER image, which is two pointers of the logging machine, and the SID after it
/// off the front of `bytes`: the SID, and what follows. A zero u32 that no SID follows says that
/// there is none. `None`: there are too few bytes.
pub(crate) fn split_token_user(
    bytes: &[u8],
    pointer_size: usize,
) -> Option<(Option<&[u8]>, &[u8])> {
    let sid = bytes.get(pointer_size * 2..);
    if le::u32(bytes, 0)? == 0 && !sid.is_some_and(looks_like_one) {
        return Some((None, &bytes[4..]));
    }
    let (sid, rest) = sid?.split_at_checked(size(sid?)?)?;
    Some((Some(sid), rest))
}

/// Whether a whole SID starts here, of the one revision there is and at most its 15
/// sub-authorities.
fn looks_like_one(bytes: &[u8]) -> bool {
    matches!(bytes, [1, 0..=15, ..]) && size(bytes).is_some_and(|size| size <= bytes.len())
}
