//! SMB sessions between two machines: dialect, signing and encryption.
//!
//! Sources: "Overview of Server Message Block signing" in the Windows Server documentation; for the
//! dialects of Windows releases, "Overview of file sharing using the SMB 3 protocol".

use std::fmt;

use serde::Serialize;

use crate::catalogue::{Catalogue, Datum};
use crate::machine::Machine;

/// Version of the SMB protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Dialect {
    /// SMB 1.
    #[serde(rename = "1")]
    V1,
    /// SMB 2.0.2.
    #[serde(rename = "2.0.2")]
    V202,
    /// SMB 2.1.
    #[serde(rename = "2.1")]
    V21,
    /// SMB 3.0.
    #[serde(rename = "3.0")]
    V30,
    /// SMB 3.0.2.
    #[serde(rename = "3.0.2")]
    V302,
    /// SMB 3.1.1.
    #[serde(rename = "3.1.1")]
    V311,
}

impl Dialect {
    /// Returns the newest dialect that a build of Windows supports.
    pub fn of_build(build: u32) -> Dialect {
        match build {
            0..=6000 => Dialect::V1,
            6001..=7599 => Dialect::V202,
            7600..=9199 => Dialect::V21,
            9200..=9599 => Dialect::V30,
            9600..=10239 => Dialect::V302,
            _ => Dialect::V311,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::V1 => "SMB 1",
            Dialect::V202 => "SMB 2.0.2",
            Dialect::V21 => "SMB 2.1",
            Dialect::V30 => "SMB 3.0",
            Dialect::V302 => "SMB 3.0.2",
            Dialect::V311 => "SMB 3.1.1",
        })
    }
}

/// Algorithm that signs or encrypts messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Algorithm {
    /// MD5 signatures of SMB 1.
    #[serde(rename = "MD5")]
    Md5,
    /// HMAC-SHA256 signatures of SMB 2.
    #[serde(rename = "HMAC-SHA256")]
    HmacSha256,
    /// AES-CMAC signatures of SMB 3.
    #[serde(rename = "AES-128-CMAC")]
    AesCmac,
    /// AES-GMAC signatures of SMB 3.1.1, if both sides are Windows 11, Server 2022 or later.
    #[serde(rename = "AES-128-GMAC")]
    AesGmac,
    /// AES-CCM encryption of SMB 3.0 and 3.0.2.
    #[serde(rename = "AES-128-CCM")]
    AesCcm,
    /// AES-GCM encryption of SMB 3.1.1.
    #[serde(rename = "AES-128-GCM")]
    AesGcm,
}

impl Algorithm {
    /// Returns a description of the cost for the user. Actual costs depend on the processor.
    pub fn cost(self) -> &'static str {
        match self {
            Algorithm::Md5 => "a hash over every byte, without special CPU instructions",
            Algorithm::HmacSha256 => {
                "a hash over every byte, without special CPU instructions: the most expensive \
                 algorithm. In a published case of Server 2008 R2, it slowed a copy from 400 to 80 \
                 Mb/s"
            }
            Algorithm::AesCmac => {
                "AES instructions, one block after the other: more expensive than encryption with \
                 AES-128-GCM, cheaper than with AES-128-CCM"
            }
            Algorithm::AesGmac => {
                "AES instructions on several blocks at once: the cheapest signature"
            }
            Algorithm::AesCcm => {
                "AES twice over every byte: more expensive than the signatures of SMB 3.0"
            }
            Algorithm::AesGcm => {
                "AES instructions on several blocks at once: cheaper than signatures with AES-128-CMAC"
            }
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::Md5 => "MD5",
            Algorithm::HmacSha256 => "HMAC-SHA256",
            Algorithm::AesCmac => "AES-128-CMAC",
            Algorithm::AesGmac => "AES-128-GMAC",
            Algorithm::AesCcm => "AES-128-CCM",
            Algorithm::AesGcm => "AES-128-GCM",
        })
    }
}

/// Client or server of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Build of Windows on this side.
    pub build: u32,
    /// Value of `RequireSecuritySignature` on the client or the server.
    pub requires: bool,
}

/// Properties of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Session {
    /// Newest dialect that both sides support.
    pub dialect: Dialect,
    /// True if messages are signed.
    pub signed: bool,
    /// True if messages are encrypted. Encrypted messages are not signed.
    pub encrypted: bool,
    /// Algorithm that signs or encrypts every byte; `None` if messages are neither signed nor encrypted.
    pub algorithm: Option<Algorithm>,
    /// True if RDMA adapters can use direct data placement in this session.
    pub direct_placement: bool,
}

/// First build (Server 2022; Windows 11 is later) that can sign with AES-128-GMAC. From this build on,
/// RDMA keeps direct data placement for signed or encrypted messages.
const GMAC: u32 = 20_348;

/// Returns the session of a client and a server. `wants_encryption` is true if the share or the server
/// is set to encrypt. Dialects before SMB 3 ignore this setting.
///
/// From SMB 2 on, `EnableSecuritySignature` has no effect. In SMB 1, two sides with this setting also
/// sign, but the function ignores this case.
pub fn session(client: Side, server: Side, wants_encryption: bool) -> Session {
    let dialect = Dialect::of_build(client.build).min(Dialect::of_build(server.build));
    let is_new = client.build.min(server.build) >= GMAC;
    let encrypted = wants_encryption && dialect >= Dialect::V30;
    let signed = !encrypted && (client.requires || server.requires);
    let algorithm = match dialect {
        Dialect::V311 if encrypted => Some(Algorithm::AesGcm),
        _ if encrypted => Some(Algorithm::AesCcm),
        _ if !signed => None,
        Dialect::V1 => Some(Algorithm::Md5),
        Dialect::V202 | Dialect::V21 => Some(Algorithm::HmacSha256),
        Dialect::V311 if is_new => Some(Algorithm::AesGmac),
        Dialect::V30 | Dialect::V302 | Dialect::V311 => Some(Algorithm::AesCmac),
    };
    Session {
        dialect,
        signed,
        encrypted,
        algorithm,
        // RDMA requires SMB 3.0 or later.
        direct_placement: dialect >= Dialect::V30 && (algorithm.is_none() || is_new),
    }
}

/// Returns true if a machine requires signatures by default. `id` is `smb_cli_require` for a client or
/// `smb_srv_require` for a server. Returns `None` if the default depends on an unknown field of the machine.
pub fn requires_by_default(id: &str, machine: &Machine) -> Option<bool> {
    let mut settings = Catalogue::get().settings().iter();
    let setting = settings.find(|setting| setting.id == id)?;
    match setting.defaults_on(machine, None)[..] {
        [default] => default
            .value
            .effective()
            .map(|value| *value == Datum::Number(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Edition;

    fn side(build: u32, requires: bool) -> Side {
        Side { build, requires }
    }

    #[test]
    fn a_session_is_signed_if_either_side_requires_it() {
        for (client, server, signed) in [
            (false, false, false),
            (false, true, true),
            (true, false, true),
            (true, true, true),
        ] {
            let session = session(side(19045, client), side(17763, server), false);
            assert_eq!(session.signed, signed);
            assert_eq!(session.algorithm.is_some(), signed);
        }
    }

    /// "SMB signing overview" names the algorithms MD5, HMAC-SHA256, AES-CMAC, and AES-GMAC if both
    /// sides support it.
    #[test]
    fn the_older_side_decides_the_algorithm() {
        for (client, server, dialect, algorithm) in [
            (2600, 20348, Dialect::V1, Algorithm::Md5),
            (7601, 26100, Dialect::V21, Algorithm::HmacSha256),
            (6001, 7601, Dialect::V202, Algorithm::HmacSha256),
            (9200, 9600, Dialect::V30, Algorithm::AesCmac),
            (19045, 20348, Dialect::V311, Algorithm::AesCmac),
            (22631, 20348, Dialect::V311, Algorithm::AesGmac),
        ] {
            let session = session(side(client, true), side(server, false), false);
            assert_eq!(
                (session.dialect, session.algorithm),
                (dialect, Some(algorithm))
            );
        }
    }

    #[test]
    fn encryption_replaces_signatures() {
        let encrypted = |client, server| session(side(client, true), side(server, true), true);
        let session = encrypted(19045, 17763);
        assert!(session.encrypted && !session.signed);
        assert_eq!(session.algorithm, Some(Algorithm::AesGcm));
        assert_eq!(encrypted(9600, 9200).algorithm, Some(Algorithm::AesCcm));
        let old = encrypted(7601, 26100);
        assert!(old.signed && !old.encrypted);
    }

    #[test]
    fn rdma_needs_server_2022_for_both() {
        let direct = |build, signed| {
            session(side(build, signed), side(build, false), false).direct_placement
        };
        assert!(direct(17763, false) && !direct(17763, true) && direct(20348, true));
    }

    #[test]
    fn defaults_are_those_of_build_and_edition() {
        let machine = |build, edition| Machine {
            name: None,
            build: Some(build),
            edition: Some(edition),
        };
        for (build, edition, client, server) in [
            (26100, Edition::Pro, true, true),
            (26100, Edition::Home, false, false),
            (26100, Edition::Server, true, false),
            (26100, Edition::DomainController, true, true),
            (19045, Edition::Pro, false, false),
            (17763, Edition::DomainController, false, true),
        ] {
            let machine = machine(build, edition);
            assert_eq!(
                requires_by_default("smb_cli_require", &machine),
                Some(client)
            );
            assert_eq!(
                requires_by_default("smb_srv_require", &machine),
                Some(server)
            );
        }
        assert_eq!(
            requires_by_default("smb_srv_require", &Machine::default()),
            None
        );
    }
}
