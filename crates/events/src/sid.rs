//! Security identifiers in payloads.

use etl::le;

/// Returns the size in bytes of the SID at the start of `bytes`. A SID has a revision, the number
/// of sub-authorities, the authority and the sub-authorities.
pub(crate) fn size(bytes: &[u8]) -> Option<usize> {
    Some(8 + 4 * usize::from(*bytes.get(1)?))
}

/// Splits a TOKEN_USER image and the SID after it from the front of `bytes`. A TOKEN_USER image is two
/// pointers of the machine that logged the event. Returns the SID and the remaining bytes. If the first u32 is
/// 0 and no complete SID follows two pointers, there is no image and no SID, but only this u32. Returns `None`
/// if there are too few bytes.
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

/// Returns true if `bytes` start with a complete SID: revision 1 and at most 15 sub-authorities.
fn looks_like_one(bytes: &[u8]) -> bool {
    matches!(bytes, [1, 0..=15, ..]) && size(bytes).is_some_and(|size| size <= bytes.len())
}
