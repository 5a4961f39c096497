//! Modules and functions of addresses.

use std::sync::Arc;

use rustc_hash::FxHashMap;
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

/// Places of a trace: modules or functions. A place is the number of a name. Places with the same name are one place.
pub(crate) struct Places<'t> {
    trace: &'t Recording,
    by: By,
    symbols: Symbolication,
    /// Place for each image row. If addresses are grouped by function, the key also has the address.
    known: FxHashMap<(Option<u32>, u64), u32>,
    by_name: FxHashMap<Option<Arc<str>>, u32>,
    names: Vec<Option<Arc<str>>>,
}

impl PlaceOptions {
    /// Prepares the places of a trace.
    ///
    /// # Errors
    /// Returns an error if the symbol path is invalid.
    pub(crate) fn places<'t>(&self, trace: &'t Recording) -> Result<Places<'t>, Error> {
        Ok(Places {
            trace,
            by: self.by,
            symbols: Symbolication::new(&self.symbols, trace.tables.store(), &trace.names.images)?,
            known: FxHashMap::default(),
            by_name: FxHashMap::default(),
            names: Vec::new(),
        })
    }
}

impl Places<'_> {
    /// Returns the grouping.
    pub(crate) fn by(&self) -> By {
        self.by
    }

    /// Returns the place of an address. `image` is the row of the image that contains the address.
    pub(crate) fn place(&mut self, image: Option<u32>, address: u64) -> u32 {
        let within = match self.by {
            By::Module => 0,
            By::Function => address,
        };
        if let Some(place) = self.known.get(&(image, within)) {
            return *place;
        }
        let place = self.with_name(self.find_name(image, address));
        self.known.insert((image, within), place);
        place
    }

    /// Returns the place with a name.
    pub(crate) fn with_name(&mut self, name: Option<String>) -> u32 {
        let (name, names) = (name.map(Arc::from), &mut self.names);
        *self.by_name.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            (names.len() - 1) as u32
        })
    }

    /// Returns the number of places that are known so far.
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    /// Returns the name of a place: the module, or `module!function`. Without symbols, the name of a function is
    /// `module+0x123`. If the image is unknown, the name of a function is its address, and the module has no name.
    pub(crate) fn name(&self, place: u32) -> Option<&Arc<str>> {
        self.names[place as usize].as_ref()
    }

    fn find_name(&self, image: Option<u32>, address: u64) -> Option<String> {
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
    pub(crate) fn warn_of_missing_symbols(&self, out: &mut Writer) {
        for warning in MissingSymbols::warnings(&self.symbols.missing()) {
            out.warn(warning);
        }
    }
}
