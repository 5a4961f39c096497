//! The functions of the system, looked up while the program runs; `unsafe` where a DLL is trusted.

use std::path::Path;

use crate::system::Functions;
use crate::{Capabilities, Error, Interface};

/// The functions that rings are made with. They stay loaded until the program ends.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    pub(crate) functions: Functions,
}

impl Library {
    /// The system's own.
    ///
    /// # Errors
    ///
    /// [`Error::NotAvailable`] before Windows 11, under Wine and on every other system.
    pub fn system() -> Result<Self, Error> {
        let functions = Functions::of_system()?;
        Ok(Self { functions })
    }

    /// Those that a DLL exports by the names that the system's have: a stand-in for tests.
    ///
    /// # Errors
    ///
    /// When the DLL cannot be loaded, and [`Error::NotAvailable`] when it has neither interface or
    /// this is not Windows.
    ///
    /// # Safety
    ///
    /// Code of the DLL runs, and its functions must keep what `ioringapi.h` promises of those of the
    /// same name: above all that they do not touch memory after the completion of what it is for.
    #[expect(unsafe_code, reason = "it declares what its caller must promise")]
    pub unsafe fn of_dll(path: &Path) -> Result<Self, Error> {
        // SAFETY: what this function asks of its caller.
        let functions = unsafe { Functions::of_dll(path) }?;
        Ok(Self { functions })
    }

    /// What rings can do through `interface`.
    ///
    /// # Errors
    ///
    /// [`Error::NotAvailable`] when there is no such interface, or what the system says.
    pub fn capabilities(&self, interface: Interface) -> Result<Capabilities, Error> {
        self.functions.capabilities(interface)
    }
}
