//! Packet types and their fields. Options are not part of the body.

use std::net::IpAddr;

use super::{Sqn, WireError, address, cursor::Cursor};

const SPM: u8 = 0x00;
const POLL: u8 = 0x01;
const POLR: u8 = 0x02;
pub(super) const ODATA: u8 = 0x04;
pub(super) const RDATA: u8 = 0x05;
const NAK: u8 = 0x08;
const NNAK: u8 = 0x09;
const NCF: u8 = 0x0a;
const SPMR: u8 = 0x0c;
const ACK: u8 = 0x0d;

/// Type of a packet and the fields of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Source path message (SPM): announces a source and its window.
    Spm(Spm),
    /// Poll that a source sends to estimate the number of receivers.
    Poll(Poll),
    /// Answer of a receiver to a poll.
    Polr(Polr),
    /// Data that is sent for the first time.
    Odata(Data),
    /// Data that is sent again as a repair, or requested parity.
    Rdata(Data),
    /// Request of a receiver for a repair.
    Nak(Nak),
    /// Null NAK, with which a local repairer reports a NAK to the source.
    Nnak(Nak),
    /// Confirmation of a NAK by the source.
    Ncf(Nak),
    /// Request of a receiver for an SPM.
    Spmr,
    /// Acknowledgement of data by a receiver, for congestion control.
    Ack(Ack),
}

/// Fields of a source path message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spm {
    /// Sequence number of the SPM. SPMs are numbered separately from data packets.
    pub sqn: Sqn,
    /// First data packet that can still be repaired.
    pub trail: Sqn,
    /// Last data packet sent; `trail - 1` if no data packet was sent.
    pub lead: Sqn,
    /// Address to which receivers send packets for the source.
    pub path: IpAddr,
}

/// Fields of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Sequence number of the poll.
    pub sqn: Sqn,
    /// Round of the poll.
    pub round: u16,
    /// Code of the polled members: 0 for all, 1 for local repairers.
    pub sub_type: u16,
    /// Address to which members send their answers.
    pub path: IpAddr,
    /// Maximum random delay of an answer, in microseconds.
    pub back_off: u32,
    /// Value that selects receivers. A receiver answers if its identity and this value are equal in all bits
    /// that are set in `mask`.
    pub random: u32,
    /// Mask of the bits of `random` that are compared.
    pub mask: u32,
}

/// Fields of an answer to a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polr {
    /// Sequence number of the poll.
    pub sqn: Sqn,
    /// Round of the poll.
    pub round: u16,
}

/// Fields of an original or repair data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Sequence number of the data packet.
    pub sqn: Sqn,
    /// First data packet that can still be repaired.
    pub trail: Sqn,
}

/// Fields of a request for a repair (NAK), or of its confirmation (NCF).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nak {
    /// Sequence number of the missing packet. In a request for parity, the value is: first number of the
    /// group + number of requested parity packets − 1.
    pub sqn: Sqn,
    /// Address of the source.
    pub source: IpAddr,
    /// Multicast group of the source.
    pub group: IpAddr,
}

/// Fields of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Highest sequence number received.
    pub highest: Sqn,
    /// One bit for each of the last 32 packets. Bit 0 belongs to the packet `highest`. A bit is set if its
    /// packet was received.
    pub bitmap: u32,
}

impl Body {
    /// Returns the number of the packet type.
    pub fn code(&self) -> u8 {
        match self {
            Body::Spm(_) => SPM,
            Body::Poll(_) => POLL,
            Body::Polr(_) => POLR,
            Body::Odata(_) => ODATA,
            Body::Rdata(_) => RDATA,
            Body::Nak(_) => NAK,
            Body::Nnak(_) => NNAK,
            Body::Ncf(_) => NCF,
            Body::Spmr => SPMR,
            Body::Ack(_) => ACK,
        }
    }

    /// Returns true if the packet is sent towards a source. In such packets, the two ports are swapped.
    pub fn is_upstream(&self) -> bool {
        matches!(
            self,
            Body::Nak(_) | Body::Nnak(_) | Body::Spmr | Body::Polr(_) | Body::Ack(_)
        )
    }

    /// Returns true if the packet is a data packet, which may have a payload.
    pub fn is_data(&self) -> bool {
        matches!(self, Body::Odata(_) | Body::Rdata(_))
    }

    pub(super) fn read(code: u8, cursor: &mut Cursor<'_>) -> Result<Body, WireError> {
        Ok(match code {
            SPM => Body::Spm(Spm {
                sqn: Sqn(cursor.u32("an SPM's number")?),
                trail: Sqn(cursor.u32("an SPM's trail")?),
                lead: Sqn(cursor.u32("an SPM's lead")?),
                path: address::read(cursor)?.0,
            }),
            POLL => Body::Poll(Poll {
                sqn: Sqn(cursor.u32("a poll's number")?),
                round: cursor.u16("a poll's round")?,
                sub_type: cursor.u16("a poll's sub-type")?,
                path: address::read(cursor)?.0,
                back_off: cursor.u32("a poll's back-off")?,
                random: cursor.u32("a poll's random number")?,
                mask: cursor.u32("a poll's mask")?,
            }),
            POLR => {
                let sqn = Sqn(cursor.u32("an answer's number")?);
                let round = cursor.u16("an answer's round")?;
                cursor.u16("a reserved field")?;
                Body::Polr(Polr { sqn, round })
            }
            ODATA | RDATA => {
                let data = Data {
                    sqn: Sqn(cursor.u32("a data packet's number")?),
                    trail: Sqn(cursor.u32("a data packet's trail")?),
                };
                if code == ODATA {
                    Body::Odata(data)
                } else {
                    Body::Rdata(data)
                }
            }
            NAK | NNAK | NCF => {
                let nak = Nak {
                    sqn: Sqn(cursor.u32("a NAK's number")?),
                    source: address::read(cursor)?.0,
                    group: address::read(cursor)?.0,
                };
                match code {
                    NAK => Body::Nak(nak),
                    NNAK => Body::Nnak(nak),
                    _ => Body::Ncf(nak),
                }
            }
            SPMR => Body::Spmr,
            ACK => Body::Ack(Ack {
                highest: Sqn(cursor.u32("an acknowledgement's number")?),
                bitmap: cursor.u32("an acknowledgement's bitmap")?,
            }),
            unknown => return Err(WireError::Type(unknown)),
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Body::Spm(spm) => {
                out.extend_from_slice(&spm.sqn.0.to_be_bytes());
                out.extend_from_slice(&spm.trail.0.to_be_bytes());
                out.extend_from_slice(&spm.lead.0.to_be_bytes());
                address::write(spm.path, 0, out);
            }
            Body::Poll(poll) => {
                out.extend_from_slice(&poll.sqn.0.to_be_bytes());
                out.extend_from_slice(&poll.round.to_be_bytes());
                out.extend_from_slice(&poll.sub_type.to_be_bytes());
                address::write(poll.path, 0, out);
                out.extend_from_slice(&poll.back_off.to_be_bytes());
                out.extend_from_slice(&poll.random.to_be_bytes());
                out.extend_from_slice(&poll.mask.to_be_bytes());
            }
            Body::Polr(polr) => {
                out.extend_from_slice(&polr.sqn.0.to_be_bytes());
                out.extend_from_slice(&polr.round.to_be_bytes());
                out.extend_from_slice(&[0, 0]);
            }
            Body::Odata(data) | Body::Rdata(data) => {
                // Both fields are written as one word. `Packet::write` explains the reason.
                let both = u64::from(data.sqn.0) << 32 | u64::from(data.trail.0);
                out.extend_from_slice(&both.to_be_bytes());
            }
            Body::Nak(nak) | Body::Nnak(nak) | Body::Ncf(nak) => {
                out.extend_from_slice(&nak.sqn.0.to_be_bytes());
                address::write(nak.source, 0, out);
                address::write(nak.group, 0, out);
            }
            Body::Spmr => {}
            Body::Ack(ack) => {
                out.extend_from_slice(&ack.highest.0.to_be_bytes());
                out.extend_from_slice(&ack.bitmap.to_be_bytes());
            }
        }
    }
}
