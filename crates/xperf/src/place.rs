//! Modules and functions of addresses.

use session::{MissingSymbols, SymbolOptions, Symbolication};

use crate::{Error, Recording, Writer};

/// Options that decide how addresses are grouped and named.
#[derive(Clone, Debug, Default)]
pub struct PlaceOptions {
    /// Grouping of addresses: by module or by function.
    pub by: By,
    /// Sources of symbols.
    pub symbols: SymbolOptions,
}

/// Grouping of samples, routines and stacks by their address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Grouping by the module that contains the address.
    #[default]
    Module,
    /// Grouping by the function that contains the address. Without symbols, each address in a module is a
    /// group.
    Function,
}

/// Resolver of addresses to names of modules or functions.
pub struct Places<'t> {
    trace: &'t Recording,
    by: By,
    symbols: Symbolication,
}

impl PlaceOptions {
    /// Creates a resolver for the images of a trace.
    ///
    /// # Errors
    /// Returns an error if the symbol path is invalid.
    pub fn places<'t>(&self, trace: &'t Recording) -> Result<Places<'t>, Error> {
        Ok(Places {
            trace,
            by: self.by,
            symbols: Symbolication::new(&self.symbols, trace.tables.store(), &trace.names.images)?,
        })
    }
}

impl Places<'_> {
    /// Returns the grouping.
    pub fn by(&self) -> By {
        self.by
    }

    /// Returns the part of an address that identifies its group within an image. If addresses are grouped by
    /// function, this is the address itself. If they are grouped by module, this is 0.
    pub fn within(&self, address: u64) -> u64 {
        match self.by {
            By::Module => 0,
            By::Function => address,
        }
    }

    /// Returns the name of an address: the module, or `module!function`. `image` is the row of the image that
    /// contains the address. Without symbols, the name of a function is `module+0x123`. If the image is unknown, the
    /// name of a function is its address, and the module has no name.
    pub fn name(&self, image: Option<u32>, address: u64) -> Option<String> {
        if self.by == By::Module {
            return self.trace.names.module(image).map(str::to_owned);
        }
        let named = image.map(|image| image as usize).and_then(|image| {
            let function = self.symbols.function(image, address);
            function.or_else(|| self.symbols.name(image, address))
        });
        Some(named.unwrap_or_else(|| format!("{address:#x}")))
    }

    /// Adds a warning for each module whose symbols are missing.
    pub fn warn_of_missing_symbols(&self, out: &mut Writer) {
        for warning in MissingSymbols::warnings(&self.symbols.missing()) {
            out.warn(warning);
        }
    }
}
