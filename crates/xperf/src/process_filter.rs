//! Filter by process.

use tables::Identities;

/// Names and ids of processes to include. If empty, all processes are included.
#[derive(Clone, Debug, Default)]
pub struct ProcessFilter {
    /// Ids of processes to include, or texts that their names contain (case-insensitive).
    pub process: Vec<String>,
}

/// Processes of a trace that the filter selects.
pub struct WantedProcesses {
    rows: Option<Vec<bool>>,
    ids: Vec<u32>,
}

impl ProcessFilter {
    /// Returns true if the filter selects at least one process.
    pub fn has_any(&self, names: &Identities) -> bool {
        let wanted = self.wanted(names).rows;
        wanted.is_none_or(|rows| rows.contains(&true))
    }

    /// Finds the processes that the filter selects.
    pub fn wanted(&self, names: &Identities) -> WantedProcesses {
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
    /// Returns true if the filter selects a process. The process is identified by its row or, if the row is
    /// unknown, by its id.
    pub fn has(&self, row: Option<u32>, id: Option<u32>) -> bool {
        let Some(rows) = &self.rows else {
            return true;
        };
        match row.and_then(|row| rows.get(row as usize)) {
            Some(wanted) => *wanted,
            None => id.is_some_and(|id| self.ids.contains(&id)),
        }
    }
}
