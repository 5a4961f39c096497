//! Scope of an explanation.

use std::ops::Range;

use tables::{Identities, Process};

use crate::{Finding, Subject};

/// Threads, processes and time range that the user asks about. The default is the whole trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Ids of the threads.
    pub threads: Vec<u32>,
    /// Ids or file names of the processes. The case of the letters and the ending `.exe` do not
    /// matter.
    pub processes: Vec<String>,
    /// Time range, in nanoseconds since the trace's start.
    pub during: Option<Range<i64>>,
}

impl Scope {
    /// Returns true if the scope names no threads and no processes, so that all threads are in
    /// scope.
    pub(crate) fn has_all_threads(&self) -> bool {
        self.threads.is_empty() && self.processes.is_empty()
    }

    /// Returns the rows of the named processes in the table `processes`.
    pub(crate) fn process_rows<'n>(
        &'n self,
        names: &'n Identities,
    ) -> impl Iterator<Item = u32> + 'n {
        let rows = (0..).zip(names.processes());
        rows.filter(|(_, process)| self.has_process(*process))
            .map(|(row, _)| row)
    }

    /// Returns the time range. Returns `None` if there is no time range, or if it is only a moment (1 ns).
    pub(crate) fn range(&self) -> Option<&Range<i64>> {
        let during = self.during.as_ref();
        during.filter(|during| during.end.saturating_sub(during.start) > 1)
    }

    /// Returns true if a finding is about the threads, processes and time range in scope.
    pub(crate) fn has(&self, finding: &Finding, names: &Identities) -> bool {
        let has_process = |row, id| self.has_process(names.process(row, id));
        let mut subjects = finding.subjects.iter();
        let is_about_them = self.has_all_threads()
            || subjects.any(|subject| match subject {
                Subject::Thread {
                    id, process_row, ..
                } => {
                    self.threads.contains(id)
                        || process_row.is_some_and(|row| has_process(Some(row), None))
                }
                Subject::Process { row, id, .. } => has_process(*row, *id),
                _ => false,
            });
        let is_then = self.during.as_ref().is_none_or(|scope| {
            let during = finding.during.as_ref();
            during.is_some_and(|during| during.start < scope.end && scope.start < during.end)
        });
        is_about_them && is_then
    }

    fn has_process(&self, process: Process<'_>) -> bool {
        self.processes.iter().any(|name| is_called(process, name))
    }
}

/// Returns true if the user's argument `name` matches the name or the id of this process.
pub fn is_called(process: Process<'_>, name: &str) -> bool {
    let plain = |name: &str| {
        let name = name.to_lowercase();
        name.strip_suffix(".exe").unwrap_or(&name).to_owned()
    };
    process.id.is_some_and(|id| name == id.to_string())
        || (process.name).is_some_and(|own| plain(name) == plain(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{About, Severity};

    static ABOUT: About = About {
        id: "test",
        name: "",
        question: "",
        tables: &[],
        sources: &[],
    };

    fn about(subjects: Vec<Subject>) -> Finding {
        Finding::new(&ABOUT, Severity::Warning, "Threads 12 and 14.").subjects(subjects)
    }

    #[test]
    fn a_finding_is_in_scope_by_its_subjects_and_not_by_its_sentence() {
        let names = Identities::default();
        let scope = Scope {
            threads: vec![14],
            ..Scope::default()
        };
        let thread = |id| Subject::Thread {
            id,
            row: None,
            process_row: None,
        };
        assert!(scope.has(&about(vec![thread(12), thread(14)]), &names));
        assert!(!scope.has(&about(vec![thread(12)]), &names));
        assert!(!scope.has(&about(Vec::new()), &names));
        assert!(Scope::default().has(&about(Vec::new()), &names));
    }

    #[test]
    fn a_process_is_named_by_its_id_or_its_file() {
        let names = Identities::default();
        let process = |id| Subject::Process {
            id: Some(id),
            row: None,
            name: None,
        };
        let scope = |name: &str| Scope {
            processes: vec![name.to_owned()],
            ..Scope::default()
        };
        assert!(scope("12").has(&about(vec![process(12)]), &names));
        assert!(!scope("12").has(&about(vec![process(120)]), &names));
        assert!(scope("SYSTEM").has(&about(vec![process(4)]), &names));
    }

    #[test]
    fn a_finding_of_another_time_is_not_in_scope() {
        let names = Identities::default();
        let scope = Scope {
            during: Some(10..20),
            ..Scope::default()
        };
        let during = |range| about(Vec::new()).during(range);
        assert!(scope.has(&during(19..30), &names));
        assert!(!scope.has(&during(20..30), &names));
        assert!(!scope.has(&about(Vec::new()), &names));
    }
}
