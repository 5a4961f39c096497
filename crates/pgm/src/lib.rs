#![doc = include_str!("../README.md")]
//!
//! # Layout
//!
//! | | |
//! |---|---|
//! | [`wire`] | the wire format |
//! | [`fec`] | forward error correction |
//! | [`Source`], [`Receiver`] | sender and receiver of the protocol, without I/O |
//! | [`Socket`] | sender, receiver or both, on network sockets |

mod congestion;
pub mod fec;
mod receiver;
mod socket;
mod source;
mod time;
mod transmit;
pub mod wire;

pub use congestion::CongestionConfig;
pub use receiver::{Event, Order, Receiver, ReceiverConfig, ReceiverError, ReceiverStatistics};
pub use socket::{
    Buffers, Encapsulation, Interface, Received, Refusals, Socket, SocketConfig, SocketError,
    Waiter,
};
pub use source::{
    BackOffTuning, ConfigError, LossReport, ParityConfig, Rate, SendError, Source, SourceConfig,
    SourceStatistics, WindowLimit,
};
pub use time::Time;
pub use transmit::{Destination, Transmit};
