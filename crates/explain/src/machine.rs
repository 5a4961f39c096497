//! Facts about the traced machine.

use tables::{SessionsView, StoreError, Table};

use crate::Reader;

/// Facts about the machine from the table `sessions`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Machine {
    /// Build number of Windows.
    pub(crate) os_build: Option<u32>,
    /// Frequency of the processors in MHz.
    pub(crate) cpu_mhz: Option<u32>,
}

impl Reader<'_> {
    /// Returns facts about the traced machine.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(crate) fn machine(&self) -> Result<Machine, StoreError> {
        let table = self.table(Table::Sessions)?;
        let columns = ["start_ns", "os_build", "cpu_mhz"];
        let mut machine = Machine::default();
        for batch in self.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = SessionsView::new(&batch)?;
            for row in 0..view.len() {
                let mhz = view.cpu_mhz.get(row).filter(|mhz| *mhz > 0);
                machine.os_build = machine.os_build.or(view.os_build.get(row));
                machine.cpu_mhz = machine.cpu_mhz.or(mhz);
            }
        }
        Ok(machine)
    }
}
