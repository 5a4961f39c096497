//! The network: how long packets take there and back, and how many go through.
//!
//! A **source** sends probes at a steady rate, a **reflector** sends each back, and the source notes
//! when ([`measure`], [`reflect`]). Both may run here, on a [`Testbed`]. What carries the packets is a
//! [`Transport`]; [`Udp`] and [`Pgm`] are two, and on Linux other people's libraries are others.
//! [`throughput`] asks instead how much gets through by each way of sending and receiving, and [`peers`]
//! what other people's programs say.
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//!
//! use measure::net::{self, Around, Pace, Patience, Place, Traffic, Udp, UdpOptions};
//!
//! let stop = std::sync::atomic::AtomicBool::new(false);
//! let has_stopped = || stop.load(std::sync::atomic::Ordering::Relaxed);
//! let options = UdpOptions::default();
//! let here = "127.0.0.1:0".parse()?;
//! let (mut reflector, _) = Udp::open(&Place::Answering(here), &options)?;
//! let at = reflector.local_address()?;
//! std::thread::scope(|scope| {
//!     scope.spawn(|| net::reflect(&mut reflector, Patience::default(), &has_stopped));
//!     let traffic = Traffic {
//!         pace: Pace::PerSecond(NonZeroU32::new(1_000).unwrap()),
//!         size: 100,
//!         time: Duration::from_millis(20),
//!         warm_up: Duration::ZERO,
//!         patience: Duration::from_secs(2),
//!     };
//!     let (source, _) = Udp::open(&Place::Peer(at), &options)?;
//!     let around = Around {
//!         clock: &measure::Clock::best(),
//!         scheduling: &measure::Scheduling::default(),
//!         stop: &|| false,
//!     };
//!     let result = net::measure(Box::new(source), &at.to_string(), &traffic, around);
//!     stop.store(true, std::sync::atomic::Ordering::Relaxed);
//!     let result = result?;
//!     assert_eq!(result.trips.len(), 20);
//!     assert_eq!(result.tally.returned + result.tally.lost, result.tally.sent);
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod buffers;
mod carrier;
#[cfg(target_os = "linux")]
mod epgm;
mod error;
mod interface;
#[cfg(target_os = "linux")]
mod library;
mod message;
#[cfg_attr(not(target_os = "linux"), path = "no_namespaces.rs")]
mod namespaces;
#[cfg(target_os = "linux")]
mod openpgm;
pub mod peers;
mod pgm;
mod reflector;
mod round_trip_plan;
mod runs;
mod source;
mod spinning;
mod summary;
mod testbed;
pub mod throughput;
mod transport;
mod udp;
mod wire;

pub use self::pgm::Pgm;
pub use account::{Tally, Trip};
pub use buffers::Buffers;
pub use carrier::Carrier;
#[cfg(target_os = "linux")]
pub use epgm::Epgm;
pub use error::NetError;
pub use interface::Interface;
#[cfg(target_os = "linux")]
pub use openpgm::OpenPgm;
pub use reflector::{Patience, Reflected, reflect};
pub use round_trip_plan::{Fates, NetSetting, PeerRun, RoundTripPlan, RoundTripReport, Route};
pub use runs::Runs;
pub use source::{Around, Ended, MOST_PACKETS, Pace, RoundTrips, Traffic, measure};
pub use spinning::LONGEST_SPIN;
pub use testbed::{Family, Side, Testbed};
pub use transport::{Received, Repairs, Transport};
pub use udp::{Place, Udp, UdpGrants, UdpOptions};
pub use wire::{HEADER_LEN, LARGEST};
