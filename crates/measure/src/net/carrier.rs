//! Protocols and libraries that carry packets, by name.

#[cfg(target_os = "linux")]
use super::{
    Epgm, OpenPgm,
    peers::{epgm, openpgm},
};
use super::{NetError, Pgm, Place, Side, Testbed, Transport, Udp, UdpGrants, UdpOptions};
use crate::Scheduling;

/// Protocol or library that carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, which does not repair losses.
    Udp,
    /// PGM in UDP. It repairs losses and needs a multicast group.
    Pgm,
    /// PGM through the OpenPGM library, if this library is installed.
    #[cfg(target_os = "linux")]
    OpenPgm,
    /// Messages of ZeroMQ over OpenPGM, if the ZeroMQ library is installed.
    #[cfg(target_os = "linux")]
    Epgm,
}

impl Carrier {
    /// Returns the name of the carrier.
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Udp => "udp",
            Carrier::Pgm => "pgm",
            #[cfg(target_os = "linux")]
            Carrier::OpenPgm => "openpgm",
            #[cfg(target_os = "linux")]
            Carrier::Epgm => "epgm",
        }
    }

    /// Returns true if the carrier needs a multicast group.
    pub fn needs_group(self) -> bool {
        self != Carrier::Udp
    }

    /// Opens one end of a connection. `side` is [`Side::Near`] for the source and [`Side::Far`] for the reflector. If
    /// the requested real-time priority is granted, the threads of ZeroMQ run with this priority too.
    ///
    /// # Errors
    /// Returns the errors of [`Udp::open`], [`Pgm::open`] and the libraries.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_variables, reason = "only ZeroMQ uses them")
    )]
    pub fn open(
        self,
        side: Side,
        place: &Place,
        options: &UdpOptions,
        scheduling: &Scheduling,
    ) -> Result<(Box<dyn Transport>, UdpGrants), NetError> {
        fn any<T: Transport + 'static>(
            (end, grants): (T, UdpGrants),
        ) -> (Box<dyn Transport>, UdpGrants) {
            (Box::new(end), grants)
        }
        match self {
            Carrier::Udp => Udp::open(place, options).map(any),
            Carrier::Pgm => Pgm::open(place, options).map(any),
            #[cfg(target_os = "linux")]
            Carrier::OpenPgm => OpenPgm::open(place, options).map(any),
            #[cfg(target_os = "linux")]
            Carrier::Epgm => Epgm::open(side, place, options, scheduling).map(any),
        }
    }

    /// Checks whether the carrier supports this payload size. The ends are on a test bed or, without a test
    /// bed, on two machines. Returns the name and version of the library that carries the packets, if there
    /// is one.
    ///
    /// # Errors
    /// Returns an error if the library is not installed, if it does not support the size, or if it does not
    /// support two ends on the loopback interface.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_variables, reason = "only carriers of Linux need a check")
    )]
    pub(super) fn check(
        self,
        size: usize,
        testbed: Option<&Testbed>,
    ) -> Result<Option<String>, NetError> {
        #[cfg(target_os = "linux")]
        let version = match self {
            Carrier::Udp | Carrier::Pgm => return Ok(None),
            Carrier::OpenPgm => openpgm::check(size)?,
            Carrier::Epgm => epgm::check()?,
        };
        #[cfg(target_os = "linux")]
        return if testbed.is_some_and(Testbed::is_loopback) {
            Err(NetError::OneInterface)
        } else {
            Ok(Some(version))
        };
        #[cfg(not(target_os = "linux"))]
        Ok(None)
    }
}
