//! Libraries that are loaded at run time.
//!
//! Unsafe code is allowed because loading a library runs its initialisers, and because the type of
//! a symbol cannot be checked. This code is as sound as the installed packages.
#![allow(unsafe_code)]

use std::sync::{Arc, OnceLock};

use libloading::Error;

use crate::net::{LibraryError, NetError};

/// A loaded library.
#[derive(Debug)]
pub(super) struct Library(libloading::Library);

/// Functions of a library, which is loaded once and kept until the program ends.
#[derive(Debug)]
pub(super) struct Once<T> {
    name: &'static str,
    loaded: OnceLock<Result<T, LibraryError>>,
}

impl<T> Once<T> {
    /// Stores the file name of the library, which is loaded later.
    pub(super) const fn new(name: &'static str) -> Once<T> {
        Once {
            name,
            loaded: OnceLock::new(),
        }
    }

    /// Returns the functions. The first call loads the library and looks up the functions with
    /// `find`.
    ///
    /// # Errors
    /// Returns an error if the library is not installed, or if it lacks a function.
    pub(super) fn get(
        &'static self,
        find: fn(Library) -> Result<T, LibraryError>,
    ) -> Result<&'static T, NetError> {
        let load = || Library::load(self.name).and_then(find);
        let loaded = self.loaded.get_or_init(load).as_ref();
        loaded.map_err(|error| NetError::Library {
            name: self.name,
            source: error.clone(),
        })
    }
}

impl Library {
    /// Loads a library by its file name, as packages install it.
    ///
    /// # Errors
    /// Returns an error if the library is not installed or cannot be loaded.
    fn load(name: &str) -> Result<Library, LibraryError> {
        // SAFETY: the initialisers of the libraries used here only set up their own memory.
        let loaded = unsafe { libloading::Library::new(name) };
        loaded.map(Library).map_err(|error| match error {
            Error::DlOpen { source } if source.to_string().contains("No such file") => {
                LibraryError::NotInstalled
            }
            error => LibraryError::Load(Arc::new(error)),
        })
    }

    /// Returns a symbol by name.
    ///
    /// # Errors
    /// Returns an error if there is no such symbol.
    ///
    /// # Safety
    /// The symbol must have the type `T`: a function with this signature, or a variable to which
    /// `T` is a pointer. It may be used only while the library is loaded.
    pub(super) unsafe fn find<T: Copy>(&self, name: &str) -> Result<T, LibraryError> {
        // SAFETY: the caller guarantees the type.
        let symbol = unsafe { self.0.get::<T>(name) };
        symbol
            .map(|symbol| *symbol)
            .map_err(|_| LibraryError::NoSymbol(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_and_symbols_are_errors() {
        let error = Library::load("libnosuch.so.7").expect_err("not installed");
        assert!(matches!(error, LibraryError::NotInstalled), "{error}");
        let libc = Library::load("libc.so.6");
        let libc = libc.or_else(|_| Library::load("libc.so"));
        let libc = libc.expect("every Linux has a C library");
        // SAFETY: there is no such symbol, so it is not used.
        let none = unsafe { libc.find::<extern "C" fn()>("no_such_function") };
        let error = none.expect_err("no such symbol").to_string();
        assert_eq!(
            error,
            "it has no `no_such_function`; it may be another version"
        );
    }
}
