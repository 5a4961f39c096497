//! Damage of a trace's file, by its effect on conclusions.

use tables::{DamagesView, StoreError, Table};

use crate::Reader;

/// Kinds of damage that are losses reported by a session or its buffers.
pub(crate) const LOST: [&str; 5] = [
    "events_lost",
    "buffers_lost",
    "buffer_marks_lost_events",
    "buffer_marks_lost_buffers",
    "loss_events",
];

/// Kinds of damage that do not mean that the file is broken.
pub(crate) const NO_FAULT: [&str; 5] = [
    "missing_sequence_numbers",
    "unfinished",
    "clock_inversion",
    "out_of_order",
    "implausible_time",
];

/// Kinds of damage after which all other events are correct and complete.
const HARMLESS: [&str; 3] = ["unfinished", "clock_inversion", "out_of_order"];

/// Kinds of damage that occur if the end of a file is missing. The events before it are correct.
const SHORT: [&str; 2] = ["truncated", "ends_early"];

/// Damage of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// True if events are missing or wrong. Then a run can seem to begin before its thread was readied.
    pub is_any: bool,
    /// True if events are wrong, because the file was changed after it was recorded. Then events can name threads that
    /// never existed.
    pub is_broken: bool,
}

impl Damage {
    pub(super) const TABLE: Table = Table::Damages;

    pub(super) fn read(reader: &Reader<'_>) -> Result<Damage, StoreError> {
        let (mut is_any, mut wrong, mut short) = (false, 0_u64, 0_u64);
        let table = reader.table(Self::TABLE)?;
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &["kind"]) {
            let batch = batch?;
            let view = DamagesView::new(&batch)?;
            for row in 0..view.len() {
                let kind = view.kind.get(row).unwrap_or_default();
                is_any |= !HARMLESS.contains(&kind);
                match kind {
                    kind if SHORT.contains(&kind) => short += 1,
                    kind if LOST.contains(&kind) || NO_FAULT.contains(&kind) => {}
                    _ => wrong += 1,
                }
            }
        }
        // The last event of a file whose end is missing is wrong, too.
        let is_broken = wrong > short;
        Ok(Damage { is_any, is_broken })
    }
}
