//! What the tests of the network need beyond cargo: without it they leave parts out, and say so.

use crate::apt;
use crate::command::{is_installed, program, read};

/// The program by which a package of Debian is recognised, and the package.
const TOOLS: [(&str, &str); 5] = [
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("tshark", "tshark"),
    ("gcc", "gcc"),
    ("pkg-config", "pkg-config"),
];

/// The library that our PGM is tested with, as `pkg-config` knows it, and its package.
const OPENPGM: (&str, &str) = ("openpgm-5.3", "libpgm-dev");

/// The library that laglab measures beside its own PGM, as the system's loader knows it, and its package.
const ZEROMQ: (&str, &str) = ("libzmq.so.5", "libzmq5");

/// Installs what is missing, where that is possible; elsewhere it says what will be left out, and is
/// content.
pub(crate) fn install() {
    let missing = missing();
    if missing.is_empty() {
        return;
    }
    if let Err(error) = apt::install(&missing) {
        println!(
            "left out: tests of PGM with OpenPGM, ZeroMQ, tshark and lossy networks, as far as they need \
             {}: {error}",
            missing.join(" ")
        );
    }
}

fn missing() -> Vec<&'static str> {
    let (library, package) = OPENPGM;
    let has_library = is_installed("pkg-config")
        && read(program("pkg-config").args(["--modversion", library])).is_ok();
    let (loaded, zeromq) = ZEROMQ;
    let known = read(program("ldconfig").arg("-p"));
    let has_zeromq = known.is_ok_and(|known| known.contains(loaded));
    (TOOLS.iter())
        .filter(|(tool, _)| !is_installed(tool))
        .map(|(_, package)| *package)
        .chain((!has_library).then_some(package))
        .chain((!has_zeromq).then_some(zeromq))
        .collect()
}
