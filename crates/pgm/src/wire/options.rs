//! Options, which follow a packet's body.

use std::net::IpAddr;

use super::{Dialect, Sqn, WireError, address, cursor::Cursor};

const LENGTH: u8 = 0x00;
const FRAGMENT: u8 = 0x01;
const NAK_LIST: u8 = 0x02;
const JOIN: u8 = 0x03;
const BACK_OFF_INTERVAL: u8 = 0x04;
const BACK_OFF_RANGE: u8 = 0x05;
const REDIRECT: u8 = 0x07;
const PARITY_PARAMETERS: u8 = 0x08;
const PARITY_GROUP: u8 = 0x09;
const CURRENT_GROUP_SIZE: u8 = 0x0a;
const NEIGHBOUR_UNREACHABLE: u8 = 0x0b;
const PATH: u8 = 0x0c;
const SYN: u8 = 0x0d;
const FIN: u8 = 0x0e;
const RST: u8 = 0x0f;
const CONGESTION_REPORT: u8 = 0x10;
const CONGESTION_REQUEST: u8 = 0x11;
const CONGESTION_DATA: u8 = 0x12;
const CONGESTION_FEEDBACK: u8 = 0x13;

const LAST: u8 = 0x80;
const MOST_OPTIONS: usize = 16;

/// The options of a packet; each at most once, of several the last counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// The packet is a part of a longer message.
    pub fragment: Option<Fragment>,
    /// Of parity data: the parity of the fragment options, from their fourth byte on.
    pub encoded_fragment: Option<[u8; 13]>,
    /// More missing packets than the NAK's own.
    pub nak_list: Option<NakList<'a>>,
    /// From here on, those who join late may ask for repairs.
    pub join: Option<Sqn>,
    /// How long receivers are to back off.
    pub back_off_interval: Option<BackOffInterval>,
    /// Between what they may choose.
    pub back_off_range: Option<BackOffRange>,
    /// A local repairer to ask instead.
    pub redirect: Option<IpAddr>,
    /// The session's FEC.
    pub parity: Option<ParityParameters>,
    /// Of parity data: how many times the group size is to be added to its index.
    pub parity_group: Option<u32>,
    /// The group is shorter than usual: it has so many packets.
    pub current_group_size: Option<u32>,
    /// The neighbour upstream cannot be reached.
    pub neighbour_unreachable: bool,
    /// The address of the network element that sends this confirmation.
    pub path: Option<IpAddr>,
    /// The session's first data.
    pub syn: bool,
    /// The session ends with this data, or has ended.
    pub fin: bool,
    /// The session has broken off.
    pub reset: Option<Reset>,
    /// How congested a receiver's path is.
    pub congestion_report: Option<CongestionReport>,
    /// Which reports are asked for: bits 4 worst link, 2 worst path, 1 worst receiver.
    pub congestion_request: Option<u8>,
    /// Whom a source asks to acknowledge.
    pub congestion_data: Option<CongestionData>,
    /// What a receiver says of its losses.
    pub congestion_feedback: Option<CongestionFeedback>,
}

/// A packet's place in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The packet that the message begins with.
    pub first: Sqn,
    /// Where in the message, in bytes, this packet's payload begins.
    pub offset: u32,
    /// The message's length in bytes.
    pub length: u32,
}

impl Fragment {
    /// The option's bytes after its header, which parity protects.
    pub(crate) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.first.0.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// The mirror image of [`Fragment::to_bytes`].
    pub(crate) fn from_bytes(bytes: [u8; 12]) -> Fragment {
        let field = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Fragment {
            first: Sqn(field(0)),
            offset: field(4),
            length: field(8),
        }
    }
}

/// How long to back off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffInterval {
    /// In microseconds.
    pub interval: u32,
    /// The poll from which on it holds; 0: from now on.
    pub poll: Sqn,
}

/// Between which intervals a receiver may choose, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffRange {
    /// The longest.
    pub max: u32,
    /// The shortest.
    pub min: u32,
}

/// A session's FEC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityParameters {
    /// Parity is sent without being asked for.
    pub proactive: bool,
    /// Parity can be asked for.
    pub on_demand: bool,
    /// Packets in a transmission group: a power of two from 2 to 128.
    pub group_size: u32,
}

/// Why a session has broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// There will be no repairs any more.
    pub no_repairs: bool,
    /// The source's reason, below 64.
    pub code: u8,
}

/// How congested a receiver's path is (RFC 3208 appendix B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionReport {
    /// Which of the three losses are said: bits 4 worst link, 2 worst path, 1 worst receiver.
    pub kinds: u8,
    /// The packet that this is about.
    pub reference: Sqn,
    /// Loss on the worst link, as network elements see it.
    pub worst_link: u16,
    /// Loss on the worst path, as network elements see it.
    pub worst_path: u16,
    /// Loss of the worst receiver.
    pub worst_receiver: u16,
    /// That receiver.
    pub receiver: IpAddr,
}

impl CongestionReport {
    /// The bit of the worst receiver's loss, here and in requests for reports.
    pub const RECEIVER: u8 = 1;
}

/// What PGMCC adds to data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionData {
    /// The source's clock, in milliseconds.
    pub timestamp: u32,
    /// Who is to acknowledge; all zero asks anybody.
    pub acker: IpAddr,
}

/// What PGMCC adds to acknowledgements and NAKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionFeedback {
    /// The time-stamp of the last data, and how long the receiver has had it since.
    pub timestamp: u32,
    /// Loss, in 1/65,536.
    pub loss: u16,
    /// The receiver.
    pub receiver: IpAddr,
}

/// The numbers of missing packets beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NakList<'a> {
    bytes: &'a [u8],
}

impl<'a> NakList<'a> {
    /// The most numbers that a list can have.
    pub const MOST: usize = 62;

    /// Makes a list of numbers, written into `room`.
    ///
    /// # Panics
    /// If there are more than [`NakList::MOST`].
    pub fn of(numbers: &[Sqn], room: &'a mut [u8; 4 * NakList::MOST]) -> NakList<'a> {
        assert!(
            numbers.len() <= NakList::MOST,
            "a list has at most 62 numbers"
        );
        for (number, bytes) in numbers.iter().zip(room.as_chunks_mut::<4>().0) {
            *bytes = number.0.to_be_bytes();
        }
        NakList {
            bytes: &room[..4 * numbers.len()],
        }
    }

    /// The numbers, in the order of the packet.
    pub fn iter(&self) -> impl Iterator<Item = Sqn> + use<'a> {
        let (words, _) = self.bytes.as_chunks::<4>();
        words.iter().map(|word| Sqn(u32::from_be_bytes(*word)))
    }
}

impl<'a> Options<'a> {
    /// Whether there is none. All are looked at without a branch: it is asked for every packet.
    pub(super) fn is_empty(&self) -> bool {
        let Options {
            fragment,
            encoded_fragment,
            nak_list,
            join,
            back_off_interval,
            back_off_range,
            redirect,
            parity,
            parity_group,
            current_group_size,
            neighbour_unreachable,
            path,
            syn,
            fin,
            reset,
            congestion_report,
            congestion_request,
            congestion_data,
            congestion_feedback,
        } = self;
        let any = fragment.is_some()
            | encoded_fragment.is_some()
            | nak_list.is_some()
            | join.is_some()
            | back_off_interval.is_some()
            | back_off_range.is_some()
            | redirect.is_some()
            | parity.is_some()
            | parity_group.is_some()
            | current_group_size.is_some()
            | neighbour_unreachable
            | path.is_some()
            | syn
            | fin
            | reset.is_some()
            | congestion_report.is_some()
            | congestion_request.is_some()
            | congestion_data.is_some()
            | congestion_feedback.is_some();
        !any
    }

    /// Whether any is of those that network elements must look at.
    pub(super) fn are_for_network(&self, is_odata: bool) -> bool {
        self.nak_list.is_some()
            || self.back_off_interval.is_some()
            || self.back_off_range.is_some()
            || self.redirect.is_some()
            || self.parity.is_some()
            || self.current_group_size.is_some() && !is_odata
            || self.neighbour_unreachable
            || self.path.is_some()
            || self.congestion_report.is_some()
            || self.congestion_request.is_some()
    }

    /// Reads all options. The third byte of each is ignored, since OpenPGM leaves it as it happens
    /// to be; that a fragment option is encoded follows from its packet being parity data.
    pub(super) fn read(
        cursor: &mut Cursor<'a>,
        is_parity_data: bool,
        dialect: Dialect,
    ) -> Result<Options<'a>, WireError> {
        let start = cursor.offset();
        let code = cursor.u8("the options' length")?;
        let length = cursor.u8("the options' length")?;
        if code & !LAST != LENGTH || length != 4 {
            return Err(WireError::NoOptionsLength {
                offset: start,
                found: code & !LAST,
            });
        }
        let total = usize::from(cursor.u16("the options' length")?);
        let Some(body) = total.checked_sub(4) else {
            return Err(WireError::OptionsEnd { offset: start });
        };
        let mut rest = cursor.part("the options", body)?;
        let mut options = Options::default();
        let mut was_last = code & LAST != 0;
        for _ in 0..MOST_OPTIONS {
            if was_last {
                break;
            }
            was_last = options.read_one(&mut rest, is_parity_data, dialect)?;
        }
        if was_last && rest.rest().is_empty() {
            Ok(options)
        } else {
            Err(WireError::OptionsEnd {
                offset: rest.offset(),
            })
        }
    }

    /// Reads one option, and says whether it is the last.
    fn read_one(
        &mut self,
        cursor: &mut Cursor<'a>,
        is_parity_data: bool,
        dialect: Dialect,
    ) -> Result<bool, WireError> {
        let offset = cursor.offset();
        let first = cursor.u8("an option")?;
        let length = usize::from(cursor.u8("an option")?);
        cursor.u8("an option")?;
        let bits = cursor.u8("an option")?;
        let code = first & !LAST;
        let wrong_length = WireError::OptionLength {
            offset,
            code,
            found: length,
        };
        let mut body = cursor.part("an option", length.checked_sub(4).ok_or(wrong_length)?)?;
        match code {
            FRAGMENT => {
                let bytes = body.array("a fragment option")?;
                if is_parity_data {
                    let mut encoded = [bits; 13];
                    encoded[1..].copy_from_slice(&bytes);
                    self.encoded_fragment = Some(encoded);
                } else {
                    self.fragment = Some(Fragment::from_bytes(bytes));
                }
            }
            NAK_LIST => {
                let count = (length - 4) / 4;
                if count > NakList::MOST || length % 4 != 0 {
                    return Err(wrong_length);
                }
                self.nak_list = Some(NakList {
                    bytes: body.take("a NAK list", length - 4)?,
                });
            }
            JOIN => self.join = Some(Sqn(body.u32("a join option")?)),
            BACK_OFF_INTERVAL => {
                self.back_off_interval = Some(BackOffInterval {
                    interval: body.u32("a back-off interval")?,
                    poll: Sqn(body.u32("a back-off interval")?),
                });
            }
            BACK_OFF_RANGE => {
                self.back_off_range = Some(BackOffRange {
                    max: body.u32("a back-off range")?,
                    min: body.u32("a back-off range")?,
                });
            }
            REDIRECT => self.redirect = Some(address::read(&mut body)?.0),
            PARITY_PARAMETERS => {
                let group_size = body.u32("parity parameters")?;
                if !group_size.is_power_of_two() || !(2..=128).contains(&group_size) {
                    return Err(WireError::GroupSize(group_size));
                }
                let (proactive, on_demand) = dialect.parity_bits();
                self.parity = Some(ParityParameters {
                    proactive: bits & proactive != 0,
                    on_demand: bits & on_demand != 0,
                    group_size,
                });
            }
            PARITY_GROUP => self.parity_group = Some(body.u32("a parity group")?),
            CURRENT_GROUP_SIZE => self.current_group_size = Some(body.u32("a group's size")?),
            NEIGHBOUR_UNREACHABLE => self.neighbour_unreachable = true,
            PATH => {
                self.path = Some(match length {
                    8 => IpAddr::from(body.array::<4>("a path")?),
                    20 => IpAddr::from(body.array::<16>("a path")?),
                    _ => return Err(wrong_length),
                });
            }
            SYN => self.syn = true,
            FIN => self.fin = true,
            RST => {
                self.reset = Some(Reset {
                    no_repairs: bits & 0x40 != 0,
                    code: bits & 0x3f,
                });
            }
            CONGESTION_REPORT => {
                let reference = Sqn(body.u32("a congestion report")?);
                let worst_link = body.u16("a congestion report")?;
                let worst_path = body.u16("a congestion report")?;
                let worst_receiver = body.u16("a congestion report")?;
                body.u16("a congestion report")?;
                self.congestion_report = Some(CongestionReport {
                    kinds: bits & 0x07,
                    reference,
                    worst_link,
                    worst_path,
                    worst_receiver,
                    receiver: address::read(&mut body)?.0,
                });
            }
            CONGESTION_REQUEST => self.congestion_request = Some(bits & 0x07),
            CONGESTION_DATA => {
                self.congestion_data = Some(CongestionData {
                    timestamp: body.u32("congestion control data")?,
                    acker: address::read(&mut body)?.0,
                });
            }
            CONGESTION_FEEDBACK => {
                let timestamp = body.u32("congestion control feedback")?;
                let (receiver, loss) = address::read(&mut body)?;
                self.congestion_feedback = Some(CongestionFeedback {
                    timestamp,
                    loss,
                    receiver,
                });
            }
            _ => {
                body.take("an option", length - 4)?;
            }
        }
        if body.rest().is_empty() {
            Ok(first & LAST != 0)
        } else {
            Err(wrong_length)
        }
    }

    /// Writes the length and all options, those for network elements first, each sort by number.
    pub(super) fn write(&self, dialect: Dialect, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[LENGTH, 4, 0, 0]);
        let mut last = start;
        let mut option = |code: u8, reserved: u8, bits: u8, body: &dyn Fn(&mut Vec<u8>)| {
            last = out.len();
            out.extend_from_slice(&[code, 0, reserved, bits]);
            body(out);
            out[last + 1] = (out.len() - last) as u8;
        };
        if let Some(list) = self.nak_list {
            option(NAK_LIST, 0, 0, &|out| out.extend_from_slice(list.bytes));
        }
        if let Some(BackOffInterval { interval, poll }) = self.back_off_interval {
            option(BACK_OFF_INTERVAL, 0, 0, &|out| {
                out.extend_from_slice(&interval.to_be_bytes());
                out.extend_from_slice(&poll.0.to_be_bytes());
            });
        }
        if let Some(BackOffRange { max, min }) = self.back_off_range {
            option(BACK_OFF_RANGE, 0, 0, &|out| {
                out.extend_from_slice(&max.to_be_bytes());
                out.extend_from_slice(&min.to_be_bytes());
            });
        }
        if let Some(repairer) = self.redirect {
            option(REDIRECT, 0, 0, &|out| address::write(repairer, 0, out));
        }
        if let Some(parity) = self.parity {
            let (proactive, on_demand) = dialect.parity_bits();
            let bits = if parity.proactive { proactive } else { 0 }
                | if parity.on_demand { on_demand } else { 0 };
            option(PARITY_PARAMETERS, 0, bits, &|out| {
                out.extend_from_slice(&parity.group_size.to_be_bytes());
            });
        }
        if let Some(size) = self.current_group_size {
            option(CURRENT_GROUP_SIZE, 0, 0, &|out| {
                out.extend_from_slice(&size.to_be_bytes());
            });
        }
        if self.neighbour_unreachable {
            option(NEIGHBOUR_UNREACHABLE, 0, 0, &|_| {});
        }
        if let Some(path) = self.path {
            option(PATH, 0, 0, &|out| address::write_bare(path, out));
        }
        if let Some(report) = self.congestion_report {
            option(CONGESTION_REPORT, 0, report.kinds, &|out| {
                out.extend_from_slice(&report.reference.0.to_be_bytes());
                out.extend_from_slice(&report.worst_link.to_be_bytes());
                out.extend_from_slice(&report.worst_path.to_be_bytes());
                out.extend_from_slice(&report.worst_receiver.to_be_bytes());
                out.extend_from_slice(&[0, 0]);
                address::write(report.receiver, 0, out);
            });
        }
        if let Some(kinds) = self.congestion_request {
            option(CONGESTION_REQUEST, 0, kinds, &|_| {});
        }
        if let Some(fragment) = self.fragment {
            option(FRAGMENT, 0, 0, &|out| {
                out.extend_from_slice(&fragment.to_bytes())
            });
        }
        if let Some(encoded) = self.encoded_fragment {
            option(FRAGMENT, dialect.encoded(), encoded[0], &|out| {
                out.extend_from_slice(&encoded[1..]);
            });
        }
        if let Some(minimum) = self.join {
            option(JOIN, 0, 0, &|out| {
                out.extend_from_slice(&minimum.0.to_be_bytes())
            });
        }
        if let Some(group) = self.parity_group {
            option(PARITY_GROUP, 0, 0, &|out| {
                out.extend_from_slice(&group.to_be_bytes())
            });
        }
        if self.syn {
            option(SYN, 0, 0, &|_| {});
        }
        if self.fin {
            option(FIN, 0, 0, &|_| {});
        }
        if let Some(reset) = self.reset {
            let bits = reset.code & 0x3f | if reset.no_repairs { 0x40 } else { 0 };
            option(RST, 0, bits, &|_| {});
        }
        if let Some(data) = self.congestion_data {
            option(CONGESTION_DATA, 0, 0, &|out| {
                out.extend_from_slice(&data.timestamp.to_be_bytes());
                address::write(data.acker, 0, out);
            });
        }
        if let Some(feedback) = self.congestion_feedback {
            option(CONGESTION_FEEDBACK, 0, 0, &|out| {
                out.extend_from_slice(&feedback.timestamp.to_be_bytes());
                address::write(feedback.receiver, feedback.loss, out);
            });
        }
        out[last] |= LAST;
        let total = (out.len() - start) as u16;
        out[start + 2..start + 4].copy_from_slice(&total.to_be_bytes());
    }
}
