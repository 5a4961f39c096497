//! Facts that show whether users notice the delays of a program.

use std::ops::Range;

use rustc_hash::FxHashSet;
use tables::{ProcessesView, StoreError, Table};

use crate::finding::Attention;
use crate::ranges::{overlap, union};
use crate::survey::MESSAGES;
use crate::{Case, Scope, ThreadWaits};

/// Kind of a process by its closeness to the user, the closest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProcessKind {
    /// Process of no user: a service, or a part of the system.
    Service,
    OfUser,
    /// Process with threads that handle messages of windows.
    Window,
}

/// Facts that show whether users notice the waits of a thread.
pub(crate) struct UserAttention {
    /// Time ranges in which processes had the focus, by row of the process.
    focus: Vec<(u32, Range<i64>)>,
    /// Rows of the processes of users. They are used if the focus is unknown.
    pub(crate) of_users: FxHashSet<u32>,
    /// Processes with threads that handle messages of windows, by row.
    pub(crate) with_windows: FxHashSet<u32>,
    pub(crate) is_asked: bool,
}

impl UserAttention {
    pub(crate) fn read(case: &Case<'_>) -> Result<UserAttention, StoreError> {
        let focus = case.focus()?.into_iter();
        let focus = focus.filter_map(|focus| Some((focus.process_row?, focus.during)));
        let threads = case.survey.threads.iter();
        let with_windows = threads.filter(|thread| UserAttention::has_window(thread));
        Ok(UserAttention {
            focus: focus.collect(),
            of_users: of_users(case)?,
            with_windows: with_windows
                .filter_map(|thread| thread.process_row)
                .collect(),
            is_asked: !case.scope.has_all_threads(),
        })
    }

    pub(crate) fn knows_focus(&self) -> bool {
        !self.focus.is_empty()
    }

    /// Returns the attention that the user paid to a process in the time range; `None` if it is unknown, or
    /// the user asked about threads or processes.
    pub(crate) fn attention(
        &self,
        process_row: Option<u32>,
        range: &Range<i64>,
    ) -> Option<Attention> {
        let row = process_row.filter(|_| self.knows_focus() && !self.is_asked)?;
        let mut focus = self.focus.iter();
        let had_focus =
            focus.any(|(process, focus)| *process == row && overlap(focus, range).is_some());
        Some(match (had_focus, self.with_windows.contains(&row)) {
            (true, _) => Attention::Focus,
            (false, true) => Attention::Window,
            (false, false) => Attention::Background,
        })
    }

    /// Returns the kind of a process by its closeness to the user.
    pub(crate) fn kind(&self, process_row: Option<u32>) -> ProcessKind {
        match process_row {
            Some(row) if self.with_windows.contains(&row) => ProcessKind::Window,
            Some(row) if self.of_users.contains(&row) => ProcessKind::OfUser,
            _ => ProcessKind::Service,
        }
    }

    /// Returns true if the thread handles window messages.
    pub(crate) fn has_window(thread: &ThreadWaits) -> bool {
        thread.count(MESSAGES) > 0
    }

    /// Returns true if users may notice the thread. At least one of four conditions must hold: the user asked about
    /// threads or processes; the thread handles window messages; the trace records the focus; or the thread's process
    /// belongs to a user.
    pub(crate) fn is_noticed(&self, thread: &ThreadWaits) -> bool {
        let is_of_user = || {
            thread
                .process_row
                .is_some_and(|row| self.of_users.contains(&row))
        };
        self.is_asked || UserAttention::has_window(thread) || self.knows_focus() || is_of_user()
    }

    /// Returns the time within the range during which the process had the focus, in nanoseconds. Returns the length
    /// of the range if the focus is not recorded, or if the user asked about threads or processes.
    pub(crate) fn noticed_ns(&self, process_row: Option<u32>, range: &Range<i64>) -> i64 {
        let length = range.end.saturating_sub(range.start);
        if self.is_asked || !self.knows_focus() {
            return length;
        }
        let of_process = self
            .focus
            .iter()
            .filter(|(row, _)| Some(*row) == process_row);
        let parts = of_process.filter_map(|(_, focus)| overlap(focus, range));
        let parts = union(parts.collect());
        parts.iter().map(|part| part.end - part.start).sum()
    }
}

/// Returns true if the thread is in scope.
pub(crate) fn is_asked(scope: &Scope, processes: &[u32], thread: &ThreadWaits) -> bool {
    scope.has_all_threads()
        || scope.threads.contains(&thread.thread_id)
        || (thread.process_row).is_some_and(|row| processes.contains(&row))
}

/// Returns the rows of the processes in sessions of users. Services and the system are in session 0, which is no
/// session of a user.
fn of_users(case: &Case<'_>) -> Result<FxHashSet<u32>, StoreError> {
    let mut rows = FxHashSet::default();
    let table = case.table(Table::Processes)?;
    let mut first = 0;
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &["session_id"])?;
        let view = ProcessesView::new(&batch)?;
        let sessions = (0..view.len()).map(|row| view.session_id.get(row));
        let all = (first..).zip(sessions);
        rows.extend(
            all.filter(|(_, session)| session.is_some_and(|id| id != 0))
                .map(|(row, _)| row),
        );
        first += view.len() as u32;
    }
    Ok(rows)
}
