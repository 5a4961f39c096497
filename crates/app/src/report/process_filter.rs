//! The processes that a report is about.

use tables::Identities;

/// Which processes are wanted; all if none is named.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ProcessFilter {
    /// Only processes with this id, or whose name holds this, in any case
    #[arg(long, value_name = "NAME|PID")]
    process: Vec<String>,
}

/// The filter, applied to the processes of a trace.
pub(crate) struct WantedProcesses {
    rows: Option<Vec<bool>>,
    ids: Vec<u32>,
}

impl ProcessFilter {
    /// Looks the processes up.
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
    /// Whether the process of a row in `processes` is wanted, or one of which only the id is known.
    pub(crate) fn has(&self, row: Option<u32>, id: Option<u32>) -> bool {
        let Some(rows) = &self.rows else {
            return true;
        };
        match row.and_then(|row| rows.get(row as usize)) {
            Some(wanted) => *wanted,
            None => id.is_some_and(|id| self.ids.contains(&id)),
        }
    }
}
