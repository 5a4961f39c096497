//! Labels for the cells of evidence. Each function returns the same text as an SQL function.

use tables::{Named, WaitKind, linux_states};

use crate::Reader;

impl Reader<'_> {
    /// Returns the result of the SQL function `process(process_row)`.
    pub fn process_label(&self, row: Option<u32>) -> Option<String> {
        self.names.process_label(row)
    }

    /// Returns the result of the SQL function `module(image_row)`.
    pub fn module_label(&self, image_row: Option<u32>) -> Option<&str> {
        self.names.module_label(image_row)
    }

    /// Returns true if the image is the kernel or the hardware abstraction layer (HAL), which run timers.
    pub(crate) fn is_kernel_or_hal(&self, image_row: u32) -> bool {
        let module = self.module_label(Some(image_row)).unwrap_or("");
        is_kernel(module) || module.eq_ignore_ascii_case("hal.dll")
    }

    /// Returns the result of the SQL function `symbol(image_row, address)`.
    pub fn symbol(&self, image_row: Option<u32>, address: u64) -> String {
        self.names.symbol(self.functions, image_row, address)
    }

    /// Returns the function that contains the address, as `module!function`. Returns `None` if symbols are missing.
    pub fn function(&self, image_row: Option<u32>, address: u64) -> Option<String> {
        self.functions?.function(image_row?, address)
    }
}

/// Returns true if a module has one of the file names of the kernel.
pub fn is_kernel(module: &str) -> bool {
    ["ntoskrnl.exe", "ntkrnlmp.exe", "ntkrnlpa.exe"]
        .iter()
        .any(|kernel| kernel.eq_ignore_ascii_case(module))
}

/// Returns words for the wait that a row of `cpu_runs` describes. Linux logs only the state of a thread that waits, so the
/// kind of the wait says more. The SQL expression [`Reader::waited_for_sql`] has the same result.
pub(crate) fn waited_for(kind: Option<WaitKind>, reason: Option<u8>) -> Option<String> {
    let is_state = reason.is_none_or(linux_states::is_wait_reason);
    match kind.filter(|_| is_state) {
        Some(kind) => Some(kind.name().to_owned()),
        None => reason.map(wait_reason),
    }
}

/// Returns the result of the SQL function `wait_reason(code)`.
pub fn wait_reason(code: u8) -> String {
    tables::wait_reason(code).map_or_else(|| code.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_wait_replaces_only_the_states_of_linux() {
        let sleep = Some(WaitKind::Sleep);
        for (kind, reason, expected) in [
            (sleep, Some(linux_states::INTERRUPTIBLE), Some("sleep")),
            (
                None,
                Some(linux_states::INTERRUPTIBLE),
                Some("Interruptible"),
            ),
            (sleep, None, Some("sleep")),
            // The reason of Windows says more than the kind.
            (sleep, Some(4), Some("DelayExecution")),
            (None, None, None),
        ] {
            assert_eq!(waited_for(kind, reason).as_deref(), expected);
        }
    }
}
