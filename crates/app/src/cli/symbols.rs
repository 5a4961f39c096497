//! Options for symbols of modules.

use session::SymbolOptions;

/// Options of all commands that show names of functions.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct SymbolArgs {
    /// Symbol path of PDBs: folders, symbol stores and servers, in the syntax of _NT_SYMBOL_PATH. For recordings of
    /// Linux: folders with ELF files (`/` for those of this machine) [default: the variable _NT_SYMBOL_PATH]
    #[arg(long, value_name = "PATH", help_heading = "Symbols")]
    symbols: Option<String>,
    /// Download PDBs from the symbol servers of the symbol path
    #[cfg(feature = "network")]
    #[arg(long, help_heading = "Symbols")]
    allow_network: bool,
}

impl SymbolArgs {
    pub(super) fn options(&self) -> SymbolOptions {
        SymbolOptions {
            path: self.symbols.clone(),
            #[cfg(feature = "network")]
            allow_network: self.allow_network,
        }
    }
}
