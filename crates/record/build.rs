//! MinGW has no `OneCore_apiset`, the umbrella library of the Windows SDK that `tracelogging` links:
//! what it takes from that is in advapi32, to which a script for the linker sends it.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|set| set == value);
    if is("CARGO_CFG_TARGET_OS", "windows") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
        let script = "INPUT(-ladvapi32)\n";
        fs::write(folder.join("libOneCore_apiset.a"), script)?;
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
    Ok(())
}
