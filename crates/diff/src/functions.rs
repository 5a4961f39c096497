//! Names of the functions at sampled addresses.

use rustc_hash::FxHashMap;
use tables::{Functions, Identities, ImageTracker};

use crate::recording::Symbols;

/// Names of functions and modules of one recording.
pub(crate) struct FunctionNames<'a> {
    names: &'a Identities,
    functions: Option<&'a dyn Functions>,
    images: ImageTracker,
    known: FxHashMap<(u32, u64), u32>,
    ids: FxHashMap<Code, u32>,
    code: Vec<Code>,
}

/// Name of the code at an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Code {
    /// File name of the module.
    pub(crate) module: Box<str>,
    /// Module and function, without an offset. `None` if the module has no symbols.
    pub(crate) function: Option<Box<str>>,
}

impl Code {
    /// Returns the name of the function, or of the module if it has no symbols.
    pub(crate) fn label(&self) -> &str {
        self.function.as_ref().unwrap_or(&self.module)
    }
}

impl<'a> FunctionNames<'a> {
    pub(crate) fn new(names: &'a Identities, functions: Option<&'a dyn Functions>) -> Self {
        FunctionNames {
            names,
            functions,
            images: ImageTracker::new(&names.images),
            known: FxHashMap::default(),
            ids: FxHashMap::default(),
            code: Vec::new(),
        }
    }

    /// Returns the id of the code at an address. The address is in the image of row `image_row` of `images`.
    /// Returns `None` if the module is not known.
    pub(crate) fn at(&mut self, image_row: u32, address: u64) -> Option<u32> {
        if let Some(known) = self.known.get(&(image_row, address)) {
            return Some(*known);
        }
        let module = self.names.module_label(Some(image_row))?;
        let symbol = self.functions.and_then(|it| it.name(image_row, address));
        let function = symbol.filter(|symbol| symbol.contains('!'));
        let code = Code {
            module: module.into(),
            function: function.map(|symbol| match symbol.rfind("+0x") {
                Some(offset) => symbol[..offset].into(),
                None => symbol.into(),
            }),
        };
        let next = self.code.len() as u32;
        let id = *self.ids.entry(code.clone()).or_insert(next);
        if id == next {
            self.code.push(code);
        }
        self.known.insert((image_row, address), id);
        Some(id)
    }

    /// Returns the id of the code at an address of a process. Returns `None` if the module is not known.
    pub(crate) fn in_process(&mut self, process_id: u32, address: u64) -> Option<u32> {
        // An address rarely belongs to several images over time. If it does, the last image counts.
        let image = self.images.lookup(process_id, address, i64::MAX - 1);
        let image = image.or_else(|| self.images.lookup(process_id, address, 0));
        self.at(u32::try_from(image?).ok()?, address)
    }

    pub(crate) fn code(&self, id: u32) -> &Code {
        &self.code[id as usize]
    }

    /// Returns the names of all code. The id of a name is its index.
    pub(crate) fn all(&self) -> &[Code] {
        &self.code
    }

    /// Returns the set of modules with names of functions and the set of modules without names.
    pub(crate) fn symbols(&self) -> Symbols {
        let mut symbols = Symbols::default();
        for code in &self.code {
            let module = code.module.to_lowercase().into_boxed_str();
            match code.function {
                Some(_) => symbols.named.insert(module),
                None => symbols.unnamed.insert(module),
            };
        }
        symbols
    }
}
