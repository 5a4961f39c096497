//! The module or function that an address is in.

use clap::ValueEnum;

use super::Recording;
use crate::cli::{self, Failure};
use crate::symbolication::{SymbolOptions, Symbolication};

/// How places are told apart.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PlaceOptions {
    /// Tell apart by
    #[arg(long, value_enum, default_value_t)]
    by: By,
    #[command(flatten)]
    symbols: SymbolOptions,
}

/// By what samples, routines and stacks are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The module that the address is in
    #[default]
    Module,
    /// The function; without symbols, the address in its module
    Function,
}

/// Names places.
pub(crate) struct Places<'t> {
    trace: &'t Recording,
    by: By,
    symbols: Symbolication,
}

impl PlaceOptions {
    /// For the images of a trace.
    ///
    /// # Errors
    /// If the symbol path makes no sense.
    pub(crate) fn places<'t>(&self, trace: &'t Recording) -> Result<Places<'t>, Failure> {
        Ok(Places {
            trace,
            by: self.by,
            symbols: Symbolication::new(&self.symbols, &trace.names.images)?,
        })
    }
}

impl Places<'_> {
    /// By what places are told apart.
    pub(crate) fn by(&self) -> By {
        self.by
    }

    /// What of an address tells places of one image apart: nothing where modules are.
    pub(crate) fn within(&self, address: u64) -> u64 {
        match self.by {
            By::Module => 0,
            By::Function => address,
        }
    }

    /// The module, or `module!function` (without symbols `module+0x123`, without an image the
    /// address), of an address in the image of a row.
    pub(crate) fn name(&self, image: Option<u32>, address: u64) -> Option<String> {
        if self.by == By::Module {
            return self.trace.names.module(image).map(str::to_owned);
        }
        let named = image.and_then(|image| self.symbols.name(image as usize, address));
        Some(match named {
            None => format!("{address:#x}"),
            // A function is one place, wherever in it the address is.
            Some(name) if name.contains('!') => match name.rsplit_once("+0x") {
                Some((function, _)) => function.to_owned(),
                None => name,
            },
            Some(name) => name,
        })
    }

    /// Says on stderr whose symbols were looked for and not found.
    pub(crate) fn say_what_is_missing(&self) {
        cli::say_what_lacks_symbols(&self.symbols.missing());
    }
}
