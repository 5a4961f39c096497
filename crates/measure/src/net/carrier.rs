//! What carries packets, by name.

#[cfg(target_os = "linux")]
use super::{Epgm, OpenPgm, epgm, openpgm};
use super::{NetError, Pgm, Place, Side, Testbed, Transport, Udp, UdpGrants, UdpOptions};
use crate::Scheduling;

/// What carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, which loses what is lost.
    Udp,
    /// PGM in UDP, which sends it again. It needs a group.
    Pgm,
    /// The same by OpenPGM's library, where that is installed.
    #[cfg(target_os = "linux")]
    OpenPgm,
    /// ZeroMQ's messages on the way that OpenPGM makes, where its library is installed.
    #[cfg(target_os = "linux")]
    Epgm,
}

impl Carrier {
    /// Its name.
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

    /// Whether it needs a group to talk with.
    pub fn needs_group(self) -> bool {
        self != Carrier::Udp
    }

    /// Opens an end: the source's is the near one. ZeroMQ's threads have the real-time priority that is
    /// asked for, if it is granted.
    ///
    /// # Errors
    /// As [`Udp::open`], [`Pgm::open`] and those of the libraries.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_variables, reason = "only ZeroMQ cares for them")
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

    /// Whether packets of so many bytes of payload can be carried, on a test bed or, without, between
    /// machines. Gives the name and version of the library that does it, if one does.
    ///
    /// # Errors
    /// When its library is not installed or does not bear them, or its ends cannot both be on the
    /// loopback.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_variables, reason = "none has a library")
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
        return match testbed.is_some_and(Testbed::is_loopback) {
            true => Err(NetError::OneInterface),
            false => Ok(Some(version)),
        };
        #[cfg(not(target_os = "linux"))]
        Ok(None)
    }
}
