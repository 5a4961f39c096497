//! Other people's libraries, found while the program runs: nothing of them is part of this one.
//!
//! It has unsafe code since that is what loading a library is: its initialisers run, and nobody can check
//! that a name stands for what its header says. It is as sound as the system's packages are.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use libloading::Error;

use super::NetError;

/// A library that is loaded.
#[derive(Debug)]
pub(super) struct Library(libloading::Library);

/// What is used of a library, loaded once and kept until the program ends.
#[derive(Debug)]
pub(super) struct Once<T> {
    name: &'static str,
    loaded: OnceLock<Result<T, String>>,
}

impl<T> Once<T> {
    /// Nothing yet of the library that packages install under this name.
    pub(super) const fn new(name: &'static str) -> Once<T> {
        Once {
            name,
            loaded: OnceLock::new(),
        }
    }

    /// What is used of it.
    ///
    /// # Errors
    /// When it is not installed, or what is used is not there: in words that follow its name.
    pub(super) fn get(
        &'static self,
        find: fn(Library) -> Result<T, String>,
    ) -> Result<&'static T, NetError> {
        let load = || Library::load(self.name).and_then(find);
        let loaded = self.loaded.get_or_init(load).as_ref();
        loaded.map_err(|why| NetError::Library {
            name: self.name,
            why: why.clone(),
        })
    }
}

impl Library {
    /// Loads a library by the name under which packages install it.
    ///
    /// # Errors
    /// When it is not installed, in words that follow its name.
    fn load(name: &str) -> Result<Library, String> {
        // SAFETY: the libraries that are asked for here only set up their own memory when they are
        // loaded.
        let loaded = unsafe { libloading::Library::new(name) };
        loaded.map(Library).map_err(|error| match error {
            Error::DlOpen { source } if source.to_string().contains("No such file") => {
                "is not installed".to_owned()
            }
            error => format!("cannot be loaded: {error}"),
        })
    }

    /// What it calls so.
    ///
    /// # Errors
    /// When it has no such name, in words that follow its own.
    ///
    /// # Safety
    /// The name must stand for a `T`: a function of that signature, or a variable of which `T` is a
    /// pointer. It may be used while the library is loaded.
    pub(super) unsafe fn find<T: Copy>(&self, name: &str) -> Result<T, String> {
        // SAFETY: as the caller guarantees.
        let found = unsafe { self.0.get::<T>(name) };
        found
            .map(|found| *found)
            .map_err(|_| format!("has no `{name}`: is it another version?"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said() {
        let said = Library::load("libnosuch.so.7").expect_err("nobody has it");
        assert_eq!(said, "is not installed");
        let Ok(libc) = Library::load("libc.so.6") else {
            return;
        };
        // SAFETY: it is not there, so nothing is made of it.
        let none = unsafe { libc.find::<extern "C" fn()>("no_such_function") };
        let said = none.expect_err("it has none");
        assert_eq!(said, "has no `no_such_function`: is it another version?");
    }
}
