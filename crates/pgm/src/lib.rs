#![doc = include_str!("../README.md")]
//!
//! # Layout
//!
//! | | |
//! |---|---|
//! | [`wire`] | packets, read and written |
//! | [`fec`] | the code that makes parity |
//! | [`Source`], [`Receiver`] | the two ends, without I/O |
//! | [`Socket`] | both on real sockets |

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
    Buffers, Encapsulation, Interface, Received, Socket, SocketConfig, SocketError, Waiter,
};
pub use source::{
    BackOffTuning, ConfigError, LossReport, ParityConfig, Rate, SendError, Source, SourceConfig,
    SourceStatistics, WindowLimit,
};
pub use time::Time;
pub use transmit::{Destination, Transmit};
