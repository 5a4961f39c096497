//! System functions for rings. The functions are looked up at run time. Loading the functions from a DLL by
//! its path is unsafe, because loading runs the code of the DLL.

use std::path::Path;

use crate::system::Functions;
use crate::{Capabilities, Error, Interface};

/// System functions for rings. They stay loaded until the program ends.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    pub(crate) functions: Functions,
}

impl Library {
    /// Loads the functions of the system.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotAvailable`] before Windows 11, under Wine and on all other systems.
    pub fn system() -> Result<Self, Error> {
        let functions = Functions::from_system()?;
        Ok(Self { functions })
    }

    /// Loads functions with the same names as the system's functions from another DLL, for tests.
    ///
    /// # Errors
    ///
    /// Returns an error if the DLL cannot be loaded. Returns [`Error::NotAvailable`] if the DLL
    /// exports neither of the two interfaces, or if the system is not Windows.
    ///
    /// # Safety
    ///
    /// This call runs the DLL's code. The DLL's functions must uphold the contract of `ioringapi.h`. In
    /// particular, the functions must not access the memory of an operation after the operation completed.
    #[expect(unsafe_code, reason = "it declares what its caller must promise")]
    pub unsafe fn from_dll(path: &Path) -> Result<Self, Error> {
        // SAFETY: the caller upholds the contract of this function.
        let functions = unsafe { Functions::from_dll(path) }?;
        Ok(Self { functions })
    }

    /// Queries the capabilities of rings through `interface`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotAvailable`] if the interface does not exist, or the error of the system.
    pub fn capabilities(&self, interface: Interface) -> Result<Capabilities, Error> {
        self.functions.capabilities(interface)
    }
}
