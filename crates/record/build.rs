//! Build script that provides the library `OneCore_apiset`. `tracelogging` links it. It is an umbrella
//! library of the Windows SDK, and MinGW lacks it. A linker script redirects it to advapi32, which exports
//! the same functions.

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
