//! Peers: programs and libraries of other projects that measure or carry the same packets.
//!
//! Peers are used only for comparison. Their code is not part of this program: programs run as
//! separate processes, and libraries are loaded at run time if they are installed. If a peer is
//! missing, everything else works, and the result lists the peer as unavailable.
//!
//! | | |
//! |---|---|
//! | `sockperf`, `iperf3` | programs that measure round trips and throughput |
//! | [`OpenPgm`] | a library for PGM, as a carrier next to laglab's [`Pgm`](super::Pgm) |
//! | [`Epgm`] | ZeroMQ's messages over OpenPGM, as a carrier |

#[cfg(target_os = "linux")]
pub(super) mod epgm;
mod iperf3;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
pub(super) mod openpgm;
mod programs;
mod sockperf;

#[cfg(target_os = "linux")]
pub use epgm::Epgm;
pub use iperf3::throughput;
#[cfg(target_os = "linux")]
pub use openpgm::OpenPgm;
use programs::Peer;
pub(super) use programs::find;
pub use programs::{PeerError, PeerRoundTrips, PeerThroughput};
pub use sockperf::round_trips;
