//! Network probes: round-trip times and throughput.
//!
//! A **source** sends probe packets at a constant rate, and a **reflector** returns them. The
//! source measures the time until each packet returns ([`measure`], [`reflect`]). Both may run on
//! this machine, on a [`Testbed`]. A [`Transport`] carries the packets: [`Udp`], [`Pgm`] and, on
//! Linux, libraries of other projects. [`throughput`] measures the rate of each method of sending
//! and receiving. [`peers`] runs programs and libraries of other projects for comparison.
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//!
//! use measure::net::{self, RunContext, Pace, Patience, Place, Traffic, Udp, UdpOptions};
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
//!     let context = RunContext {
//!         clock: &measure::Clock::best(),
//!         scheduling: &measure::Scheduling::default(),
//!         stop: &|| false,
//!     };
//!     let result = net::measure(Box::new(source), &at.to_string(), &traffic, context);
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
mod error;
mod interface;
mod message;
#[cfg_attr(not(target_os = "linux"), path = "no_namespaces.rs")]
mod namespaces;
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
pub use error::{LibraryError, NetError};
pub use interface::Interface;
#[cfg(target_os = "linux")]
pub use peers::{Epgm, OpenPgm};
pub use reflector::{Patience, ReflectorCounts, reflect};
pub use round_trip_plan::{Fates, NetSetting, PeerRun, RoundTripPlan, RoundTripReport, Route};
pub use runs::Runs;
pub use source::{MAX_PACKETS, Pace, RoundTrips, RunContext, RunEnd, Traffic, measure};
pub use spinning::MAX_SPIN;
pub use testbed::{Family, Side, Testbed};
pub use transport::{ReceivedPacket, Repairs, Transport};
pub use udp::{Place, Udp, UdpGrants, UdpOptions};
pub use wire::{HEADER_LEN, LARGEST};
