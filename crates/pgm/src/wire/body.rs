//! What each type of packet says, options apart.

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

/// The packet's type with its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Source path message: the source lives, and this is its window.
    Spm(Spm),
    /// A source asks its receivers to answer.
    Poll(Poll),
    /// A receiver's answer.
    Polr(Polr),
    /// Original data.
    Odata(Data),
    /// Repair data.
    Rdata(Data),
    /// A receiver asks for a repair.
    Nak(Nak),
    /// A repairer says that it has seen a NAK.
    Nnak(Nak),
    /// The source confirms a NAK.
    Ncf(Nak),
    /// A receiver asks for an SPM.
    Spmr,
    /// A receiver acknowledges data, for congestion control.
    Ack(Ack),
}

/// A source path message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spm {
    /// The message's own number, of its own sequence.
    pub sqn: Sqn,
    /// The first packet that can still be repaired.
    pub trail: Sqn,
    /// The last packet sent: `trail - 1` when there is none.
    pub lead: Sqn,
    /// Where upstream packets go.
    pub path: IpAddr,
}

/// A poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The poll's number.
    pub sqn: Sqn,
    /// The round within the poll.
    pub round: u16,
    /// What is polled: 0 everybody, 1 local repairers.
    pub sub_type: u16,
    /// Where answers go.
    pub path: IpAddr,
    /// Answers wait a random time up to this, in microseconds.
    pub back_off: u32,
    /// Who answers: those whose identity agrees with this in the bits of `mask`.
    pub random: u32,
    /// See `random`.
    pub mask: u32,
}

/// The answer to a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polr {
    /// The poll's number.
    pub sqn: Sqn,
    /// The poll's round.
    pub round: u16,
}

/// Data, original or repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The packet's number.
    pub sqn: Sqn,
    /// The first packet that can still be repaired.
    pub trail: Sqn,
}

/// A request for repair, or its confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nak {
    /// What is missing; of a request for parity, a group's number plus the count less one.
    pub sqn: Sqn,
    /// The source that has it.
    pub source: IpAddr,
    /// The group it was sent to.
    pub group: IpAddr,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The highest packet received.
    pub highest: Sqn,
    /// Which of the 32 packets up to it were received; bit 0 is the highest.
    pub bitmap: u32,
}

impl Body {
    /// The type's number.
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

    /// Whether it goes towards a source, so that its ports are turned round.
    pub fn is_upstream(&self) -> bool {
        matches!(
            self,
            Body::Nak(_) | Body::Nnak(_) | Body::Spmr | Body::Polr(_) | Body::Ack(_)
        )
    }

    /// Whether it may carry a payload.
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
                // In one word: see `Packet::write`.
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
