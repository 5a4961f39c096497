//! Options, which follow the body of a packet.

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
const MAX_OPTIONS: usize = 16;

/// Options of a packet. Each option is stored at most once. If a packet repeats an option, the last
/// occurrence counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// Position of the packet in a longer message.
    pub fragment: Option<Fragment>,
    /// Parity of the fragment options of a group. It covers the options from their fourth byte on. Only
    /// parity packets have this option.
    pub encoded_fragment: Option<[u8; 13]>,
    /// Further missing packets, in addition to the packet in the body of the NAK.
    pub nak_list: Option<NakList<'a>>,
    /// First packet that receivers may request when they join late.
    pub join: Option<Sqn>,
    /// Back-off interval that receivers must use.
    pub back_off_interval: Option<BackOffInterval>,
    /// Range of back-off intervals that receivers may choose from.
    pub back_off_range: Option<BackOffRange>,
    /// Address of a local repairer to use instead of the source.
    pub redirect: Option<IpAddr>,
    /// FEC parameters of the session.
    pub parity: Option<ParityParameters>,
    /// Factor in the index of a parity packet. The index is: this factor × group size + position of the
    /// sequence number in the group.
    pub parity_group: Option<u32>,
    /// Number of packets in a shortened group.
    pub current_group_size: Option<u32>,
    /// True if the upstream neighbour cannot be reached.
    pub neighbour_unreachable: bool,
    /// Address of the network element that sent this confirmation.
    pub path: Option<IpAddr>,
    /// True for the first data packet of the session.
    pub syn: bool,
    /// True for the last data packet of the session, and for packets that are sent after the session has
    /// ended.
    pub fin: bool,
    /// Reason for the abort, if the session was aborted.
    pub reset: Option<Reset>,
    /// Report of congestion on a receiver's path.
    pub congestion_report: Option<CongestionReport>,
    /// Requested reports as bits: 4 for the worst link, 2 for the worst path, 1 for the worst
    /// receiver.
    pub congestion_request: Option<u8>,
    /// Acker (the receiver that acknowledges) that the source has chosen, and a timestamp.
    pub congestion_data: Option<CongestionData>,
    /// Loss rate that a receiver reports for congestion control.
    pub congestion_feedback: Option<CongestionFeedback>,
}

/// Position of a packet in a message that needs several packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Sequence number of the message's first packet.
    pub first: Sqn,
    /// Offset of the payload in the message, in bytes.
    pub offset: u32,
    /// Length of the message in bytes.
    pub length: u32,
}

impl Fragment {
    /// Returns the bytes of the option after its header. Parity protects these bytes.
    pub(crate) fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.first.0.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Parses the result of [`Fragment::to_bytes`].
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

/// Back-off interval: the maximum random delay before a receiver sends a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffInterval {
    /// Interval in microseconds.
    pub interval: u32,
    /// Number of the poll at which the interval takes effect. If the number is 0, the interval takes effect
    /// now.
    pub poll: Sqn,
}

/// Range of back-off intervals, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffRange {
    /// Maximum back-off interval in microseconds.
    pub max: u32,
    /// Minimum back-off interval in microseconds.
    pub min: u32,
}

/// FEC parameters of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityParameters {
    /// True if parity is sent without a request.
    pub proactive: bool,
    /// True if receivers can request parity.
    pub on_demand: bool,
    /// Number of data packets per transmission group: a power of two from 2 to 128.
    pub group_size: u32,
}

impl ParityParameters {
    fn read(
        body: &mut Cursor<'_>,
        bits: u8,
        dialect: Dialect,
    ) -> Result<ParityParameters, WireError> {
        let group_size = body.u32("parity parameters")?;
        if !group_size.is_power_of_two() || !(2..=128).contains(&group_size) {
            return Err(WireError::GroupSize(group_size));
        }
        let (proactive, on_demand) = dialect.parity_bits();
        Ok(ParityParameters {
            proactive: bits & proactive != 0,
            on_demand: bits & on_demand != 0,
            group_size,
        })
    }

    /// Returns the bits of the option's header.
    fn bits(self, dialect: Dialect) -> u8 {
        let (proactive, on_demand) = dialect.parity_bits();
        let proactive = if self.proactive { proactive } else { 0 };
        let on_demand = if self.on_demand { on_demand } else { 0 };
        proactive | on_demand
    }
}

/// Reason why a session was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// True if the source no longer sends repairs.
    pub no_repairs: bool,
    /// Code below 64 that the source chose.
    pub code: u8,
}

/// Report of congestion on a receiver's path (RFC 3208 appendix B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionReport {
    /// Reported losses as bits: 4 for the worst link, 2 for the worst path, 1 for the worst
    /// receiver.
    pub kinds: u8,
    /// Sequence number of the packet to which the report refers.
    pub reference: Sqn,
    /// Loss on the worst link, reported by network elements.
    pub worst_link: u16,
    /// Loss on the worst path, reported by network elements.
    pub worst_path: u16,
    /// Loss of the worst receiver.
    pub worst_receiver: u16,
    /// Address of the worst receiver.
    pub receiver: IpAddr,
}

impl CongestionReport {
    /// Bit for the worst receiver's loss, in reports and in requests for reports.
    pub const RECEIVER: u8 = 1;

    fn read(body: &mut Cursor<'_>, bits: u8) -> Result<CongestionReport, WireError> {
        let reference = Sqn(body.u32("a congestion report")?);
        let worst_link = body.u16("a congestion report")?;
        let worst_path = body.u16("a congestion report")?;
        let worst_receiver = body.u16("a congestion report")?;
        body.u16("a congestion report")?;
        Ok(CongestionReport {
            kinds: bits & 0x07,
            reference,
            worst_link,
            worst_path,
            worst_receiver,
            receiver: address::read(body)?.0,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.reference.0.to_be_bytes());
        out.extend_from_slice(&self.worst_link.to_be_bytes());
        out.extend_from_slice(&self.worst_path.to_be_bytes());
        out.extend_from_slice(&self.worst_receiver.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        address::write(self.receiver, 0, out);
    }
}

/// PGMCC option of data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionData {
    /// Time of the source's clock when it sent the packet, in milliseconds.
    pub timestamp: u32,
    /// Address of the receiver that must acknowledge. If the address is all zeros, the source asks any
    /// receiver to acknowledge.
    pub acker: IpAddr,
}

/// PGMCC option of acknowledgements and NAKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionFeedback {
    /// Timestamp in milliseconds. It is the timestamp of the last data packet plus the time since the arrival
    /// of this packet.
    pub timestamp: u32,
    /// Loss rate in units of 1/65,536.
    pub loss: u16,
    /// Address of the receiver.
    pub receiver: IpAddr,
}

/// Sequence numbers of the missing packets of a NAK, without the first number. The first number is in the
/// body of the NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NakList<'a> {
    bytes: &'a [u8],
}

impl<'a> NakList<'a> {
    /// Maximum number of sequence numbers in a list.
    pub const MAX: usize = 62;

    /// Writes sequence numbers into `room`, and returns them as a list.
    ///
    /// # Panics
    /// Panics if `numbers` has more than [`NakList::MAX`] entries.
    pub fn new(numbers: &[Sqn], room: &'a mut [u8; 4 * NakList::MAX]) -> NakList<'a> {
        assert!(
            numbers.len() <= NakList::MAX,
            "a NAK list has at most 62 numbers"
        );
        for (number, bytes) in numbers.iter().zip(room.as_chunks_mut::<4>().0) {
            *bytes = number.0.to_be_bytes();
        }
        NakList {
            bytes: &room[..4 * numbers.len()],
        }
    }

    /// Returns the sequence numbers in the order of the packet.
    pub fn iter(&self) -> impl Iterator<Item = Sqn> + use<'a> {
        let (words, _) = self.bytes.as_chunks::<4>();
        words.iter().map(|word| Sqn(u32::from_be_bytes(*word)))
    }
}

impl<'a> Options<'a> {
    /// Returns true if there are no options. The code has no branches, because it runs for every
    /// packet.
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

    /// Returns true if network elements, such as routers, must inspect any of the options.
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

    /// Reads all options. The third byte of each option is ignored, because OpenPGM leaves it
    /// uninitialised. In parity packets, the fragment option contains parity.
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
        for _ in 0..MAX_OPTIONS {
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

    /// Reads one option. Returns true if it is the last option.
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
                    self.encoded_fragment = Some(encoded_fragment(bits, bytes));
                } else {
                    self.fragment = Some(Fragment::from_bytes(bytes));
                }
            }
            NAK_LIST => {
                let count = (length - 4) / 4;
                if count > NakList::MAX || length % 4 != 0 {
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
                self.parity = Some(ParityParameters::read(&mut body, bits, dialect)?);
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
                self.congestion_report = Some(CongestionReport::read(&mut body, bits)?);
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

    /// Writes the total length and all options. Options for network elements come first. The other options
    /// follow. Each of these two parts is in the order of the option numbers.
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
            option(PARITY_PARAMETERS, 0, parity.bits(dialect), &|out| {
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
            option(CONGESTION_REPORT, 0, report.kinds, &|out| report.write(out));
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

/// Returns the bytes of an encoded fragment option from the fourth byte of its header on.
fn encoded_fragment(bits: u8, bytes: [u8; 12]) -> [u8; 13] {
    let mut encoded = [bits; 13];
    encoded[1..].copy_from_slice(&bytes);
    encoded
}
