//! Wire format: parsing and writing of packets. Parsing accepts hostile bytes and does not allocate
//! memory.
//!
//! [`Packet::parse`] checks the version, lengths, address families and checksum, and returns borrowed fields.
//! [`Packet::write`] does the inverse. All integers are big-endian. Layouts follow RFC 3208 section 8 and its
//! appendices. Where the text of the RFC contradicts its figures, the code follows the figures. All
//! implementations do this.
//!
//! ```
//! use pgm::wire::{Body, Dialect, Gsi, Options, Packet};
//!
//! let request = Packet {
//!     source_port: 7500,
//!     destination_port: 40_000,
//!     gsi: Gsi([1, 2, 3, 4, 5, 6]),
//!     parity: false,
//!     variable_length: false,
//!     body: Body::Spmr,
//!     options: Options::default(),
//!     payload: b"",
//! };
//! let mut bytes = Vec::new();
//! request.write(Dialect::Rfc3208, &mut bytes);
//! assert_eq!(Packet::parse(&bytes, Dialect::Rfc3208)?, request);
//! # Ok::<(), pgm::wire::WireError>(())
//! ```

mod address;
mod body;
mod checksum;
mod cursor;
mod dialect;
mod error;
mod identity;
mod options;
mod packet;
mod sequence;

pub use body::{Ack, Body, Data, Nak, Poll, Polr, Spm};
pub use checksum::checksum;
pub use dialect::Dialect;
pub use error::WireError;
pub use identity::{Gsi, Tsi};
pub use options::{
    BackOffInterval, BackOffRange, CongestionData, CongestionFeedback, CongestionReport, Fragment,
    NakList, Options, ParityParameters, Reset,
};
pub use packet::Packet;
pub use sequence::Sqn;
