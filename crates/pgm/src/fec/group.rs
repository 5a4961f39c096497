//! Parity of a group of packets. It covers their payloads, lengths and fragment options.

use super::Code;
use crate::wire::Fragment;

/// Parts of a data packet that parity protects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) fragment: Option<Fragment>,
}

/// A parity packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parity {
    /// Parity of the payloads. Before the computation, all payloads are padded to the length of the longest
    /// payload. If the payloads differ in length, two bytes follow that contain the parity of the lengths.
    pub(crate) payload: Vec<u8>,
    /// True if `payload` ends with the parity of the lengths.
    pub(crate) variable_length: bool,
    /// Parity of the fragment options, if at least one packet of the group has such an option.
    pub(crate) encoded_fragment: Option<[u8; 13]>,
}

/// Data packet recovered from parity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecoveredPacket {
    /// Index of the packet in its group.
    pub(crate) index: usize,
    pub(crate) payload: Vec<u8>,
    pub(crate) fragment: Option<Fragment>,
}

/// Size in bytes of an encoded payload length.
const LENGTH: usize = 2;

/// First byte of an encoded fragment option, if the packet has no fragment option.
const NO_FRAGMENT: u8 = 0x80;

/// Computes parity packet `index` of a group. A shortened group has fewer members than the group
/// size of the code.
///
/// # Panics
/// Panics if `index` is too large.
pub(crate) fn encode(code: &Code, index: usize, members: &[Member<'_>]) -> Parity {
    let lengths = members.iter().map(|member| member.payload.len());
    let longest = lengths.clone().max().unwrap_or(0);
    let variable_length = lengths.min() != Some(longest);
    let mut payload = code.encode(index, members.iter().map(|m| m.payload), longest);
    if variable_length {
        let lengths: Vec<[u8; LENGTH]> = members.iter().map(length_bytes).collect();
        payload.extend(code.encode(index, lengths.iter().map(|l| &l[..]), LENGTH));
    }
    let has_fragments = members.iter().any(|member| member.fragment.is_some());
    let encoded_fragment = has_fragments.then(|| {
        let options: Vec<[u8; 13]> = members.iter().map(fragment_bytes).collect();
        let mut encoded = [0; 13];
        encoded.copy_from_slice(&code.encode(index, options.iter().map(|o| &o[..]), 13));
        encoded
    });
    Parity {
        payload,
        variable_length,
        encoded_fragment,
    }
}

/// Recovers the missing packets of a group from parity packets and their indices. Returns `None` if
/// there are too few parity packets or if they contradict each other.
pub(crate) fn recover(
    code: &Code,
    members: &[Option<Member<'_>>],
    parity: &[(usize, &Parity)],
) -> Option<Vec<RecoveredPacket>> {
    let missing: Vec<usize> = (0..members.len())
        .filter(|at| members[*at].is_none())
        .collect();
    let parity = parity.get(..missing.len())?;
    let variable_length = parity.first()?.1.variable_length;
    let has_fragments = parity[0].1.encoded_fragment.is_some();
    let agree = parity.iter().all(|(_, parity)| {
        parity.variable_length == variable_length
            && parity.encoded_fragment.is_some() == has_fragments
            && (!variable_length || parity.payload.len() >= LENGTH)
    });
    if !agree {
        return None;
    }
    let lists = |bytes: &dyn Fn(&Member<'_>) -> Vec<u8>| -> Vec<Option<Vec<u8>>> {
        members
            .iter()
            .map(|member| member.as_ref().map(bytes))
            .collect()
    };
    let solve = |lists: &[Option<Vec<u8>>], parity: &[(usize, &[u8])]| {
        let lists: Vec<Option<&[u8]>> = lists.iter().map(Option::as_deref).collect();
        code.recover(&lists, parity)
    };

    let trailer = if variable_length { LENGTH } else { 0 };
    let payloads: Vec<(usize, &[u8])> = parity
        .iter()
        .map(|(index, parity)| (*index, &parity.payload[..parity.payload.len() - trailer]))
        .collect();
    let data: Vec<Option<&[u8]>> = members.iter().map(|m| m.map(|m| m.payload)).collect();
    let mut payloads = code.recover(&data, &payloads)?;
    if variable_length {
        let lengths: Vec<(usize, &[u8])> = parity
            .iter()
            .map(|(index, parity)| (*index, &parity.payload[parity.payload.len() - LENGTH..]))
            .collect();
        let lengths = solve(&lists(&|member| length_bytes(member).to_vec()), &lengths)?;
        for (payload, length) in payloads.iter_mut().zip(lengths) {
            let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
            if length > payload.len() {
                return None;
            }
            payload.truncate(length);
        }
    }
    let mut fragments = vec![None; missing.len()];
    if has_fragments {
        let options: Vec<(usize, &[u8])> = parity
            .iter()
            .filter_map(|(index, parity)| Some((*index, &parity.encoded_fragment.as_ref()?[..])))
            .collect();
        let options = solve(&lists(&|member| fragment_bytes(member).to_vec()), &options)?;
        for (fragment, option) in fragments.iter_mut().zip(options) {
            if option[0] & NO_FRAGMENT == 0 {
                let bytes = option[1..].try_into().ok()?;
                *fragment = Some(Fragment::from_bytes(bytes));
            }
        }
    }
    let packets = missing.into_iter().zip(payloads).zip(fragments);
    Some(
        packets
            .map(|((index, payload), fragment)| RecoveredPacket {
                index,
                payload,
                fragment,
            })
            .collect(),
    )
}

fn length_bytes(member: &Member<'_>) -> [u8; LENGTH] {
    (member.payload.len() as u16).to_be_bytes()
}

fn fragment_bytes(member: &Member<'_>) -> [u8; 13] {
    let mut bytes = [0; 13];
    match member.fragment {
        Some(fragment) => bytes[1..].copy_from_slice(&fragment.to_bytes()),
        None => bytes[0] = NO_FRAGMENT,
    }
    bytes
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::*;
    use crate::wire::Sqn;

    #[test]
    fn random_packets_are_recovered() {
        let mut rng = Rng(9);
        let code = Code::for_group_size(8).unwrap();
        for _ in 0..500 {
            let fixed = rng.below(2) == 0;
            let fragmented = rng.below(3);
            let size = 1 + rng.below(8); // a size below 8 makes a shortened group
            let data: Vec<(Vec<u8>, Option<Fragment>)> = (0..size)
                .map(|_| {
                    let length = if fixed { 20 } else { rng.below(40) };
                    let payload = (0..length).map(|_| rng.bits() as u8).collect();
                    let fragment = (rng.below(2) < fragmented).then(|| Fragment {
                        first: Sqn(rng.bits() as u32),
                        offset: rng.bits() as u32,
                        length: rng.bits() as u32,
                    });
                    (payload, fragment)
                })
                .collect();
            let members: Vec<Member<'_>> = data
                .iter()
                .map(|(payload, fragment)| Member {
                    payload,
                    fragment: *fragment,
                })
                .collect();
            let mut packets: Vec<Option<Member<'_>>> = members.iter().copied().map(Some).collect();
            for _ in 0..=rng.below(size) {
                packets[rng.below(size)] = None;
            }
            let parity: Vec<Parity> = (3..3 + size).map(|h| encode(code, h, &members)).collect();
            let parity: Vec<(usize, &Parity)> = (3..).zip(&parity).collect();
            let recovered = recover(code, &packets, &parity).unwrap();
            assert_eq!(
                recovered.len(),
                packets.iter().filter(|packet| packet.is_none()).count()
            );
            for recovered in recovered {
                let (payload, fragment) = &data[recovered.index];
                assert_eq!(
                    (&recovered.payload, &recovered.fragment),
                    (payload, fragment)
                );
            }
        }
    }

    #[test]
    fn the_length_follows_in_network_order() {
        // If only one packet of a group contains data, parity packet 0 is this packet multiplied by its
        // factor.
        let code = Code::for_group_size(2).unwrap();
        let payload = [0; 0x0102];
        let members = [&payload[..], b""].map(|payload| Member {
            payload,
            fragment: None,
        });
        let parity = encode(code, 0, &members);
        assert!(parity.variable_length && parity.encoded_fragment.is_none());
        assert_eq!(parity.payload.len(), 0x0102 + 2);
        // The length is 0x0102 and the factor is 3: 3 times 1 is 3, and 3 times 2 is 6.
        assert_eq!(parity.payload[0x0102..], [3, 6]);
    }
}
