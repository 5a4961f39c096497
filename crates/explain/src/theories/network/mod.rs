//! Theories about network traffic.

mod marking;
mod packet_spread;
mod receive_spread;
mod smb_security;
mod throughput;

pub(super) use marking::Marking;
pub(super) use packet_spread::PacketSpread;
pub(super) use receive_spread::ReceiveSpread;
pub(super) use smb_security::SmbSecurity;
pub(super) use throughput::Throughput;
