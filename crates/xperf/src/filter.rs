//! Filter of rows by process, thread and CPU.

use tables::Identities;

use crate::layout::ProcessKey;

/// Rows to include. An empty list includes all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Ids of processes, or texts that their names contain (case-insensitive).
    pub process: Vec<String>,
    /// Ids of threads.
    pub thread: Vec<u32>,
    /// Numbers of CPUs.
    pub cpu: Vec<u16>,
}

/// Processes of a trace that the filter selects.
pub(crate) struct WantedProcesses {
    rows: Option<Vec<bool>>,
    ids: Vec<u32>,
}

impl Filter {
    /// Returns true if the filter selects at least one process.
    pub fn has_any_process(&self, names: &Identities) -> bool {
        let wanted = self.wanted(names).rows;
        wanted.is_none_or(|rows| rows.contains(&true))
    }

    /// Finds the processes that the filter selects.
    pub(crate) fn wanted(&self, names: &Identities) -> WantedProcesses {
        let ids: Vec<u32> = self.process.iter().filter_map(|p| p.parse().ok()).collect();
        let parts: Vec<String> = self.process.iter().map(|p| p.to_lowercase()).collect();
        let rows = names.processes().map(|process| {
            let name = process.name.map(str::to_lowercase);
            process.id.is_some_and(|id| ids.contains(&id))
                || name.is_some_and(|name| parts.iter().any(|part| name.contains(part)))
        });
        WantedProcesses {
            rows: (!self.process.is_empty()).then(|| rows.collect()),
            ids,
        }
    }
}

impl WantedProcesses {
    /// Returns true if the filter selects all processes.
    pub(crate) fn are_all(&self) -> bool {
        self.rows.is_none()
    }

    /// Returns true if the filter selects a process. The process is identified by its row or, if the row is
    /// unknown, by its id.
    pub(crate) fn has(&self, (row, id): ProcessKey) -> bool {
        let Some(rows) = &self.rows else {
            return true;
        };
        match row.and_then(|row| rows.get(row as usize)) {
            Some(wanted) => *wanted,
            None => id.is_some_and(|id| self.ids.contains(&id)),
        }
    }
}
