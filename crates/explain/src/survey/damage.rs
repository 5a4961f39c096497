//! Damage of a trace's file, by its effect on conclusions.

use tables::{Damages, DamagesView, StoreError, Table};

use crate::Reader;

/// Effect of a kind of damage on the events of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// All recorded events are correct and complete.
    Harmless,
    /// Samples are missing. All other events are correct and complete.
    FewerSamples,
    /// Some times are wrong.
    WrongTimes,
    /// Buffers are missing. Either they were lost, or the session kept only its latest buffers.
    MissingBuffers,
    /// The recorder lost events.
    Lost,
    /// The end of a file is missing, or its recorder was killed. The events before the end are correct, except perhaps the
    /// last one.
    CutOff,
    /// Events are missing or wrong, because the file was changed after it was recorded.
    Wrong,
}

/// Kinds of damage other than [`Effect::Wrong`].
const EFFECTS: [(&str, Effect); 15] = [
    ("unfinished", Effect::Harmless),
    ("clock_inversion", Effect::Harmless),
    ("out_of_order", Effect::Harmless),
    ("implausible_time", Effect::WrongTimes),
    ("missing_sequence_numbers", Effect::MissingBuffers),
    ("events_lost", Effect::Lost),
    ("buffers_lost", Effect::Lost),
    ("buffer_marks_lost_events", Effect::Lost),
    ("buffer_marks_lost_buffers", Effect::Lost),
    ("loss_events", Effect::Lost),
    (Damages::THROTTLED, Effect::FewerSamples),
    (Damages::KILLED, Effect::CutOff),
    (Damages::NO_DESCRIPTIONS, Effect::CutOff),
    ("truncated", Effect::CutOff),
    ("ends_early", Effect::CutOff),
];

impl Effect {
    /// Returns the effect of a kind of damage. `kind` is a value of the column `kind` of `damage`.
    pub(crate) fn from_kind(kind: &str) -> Effect {
        let known = EFFECTS.iter().find(|(name, _)| *name == kind);
        known.map_or(Effect::Wrong, |(_, effect)| *effect)
    }

    /// Returns true if the damage means that the file was changed or cut off after it was recorded.
    pub(crate) fn is_fault_of_file(self) -> bool {
        matches!(self, Effect::CutOff | Effect::Wrong)
    }

    /// Returns true if events may be missing.
    pub(crate) fn lacks_events(self) -> bool {
        !matches!(
            self,
            Effect::Harmless | Effect::FewerSamples | Effect::WrongTimes
        )
    }

    /// Returns the kinds of damage for which `is` returns true, except kinds of [`Effect::Wrong`].
    pub(crate) fn kinds(is: impl Fn(Effect) -> bool) -> Vec<String> {
        let kinds = EFFECTS.iter().filter(|(_, effect)| is(*effect));
        kinds.map(|(kind, _)| (*kind).to_owned()).collect()
    }
}

/// Damage of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// True if events are missing or wrong. Then a run can seem to begin before its thread was readied.
    pub is_any: bool,
    /// True if events may be missing.
    pub lacks_events: bool,
    /// True if events are wrong, because the file was changed after it was recorded. Then events can name threads that
    /// never existed.
    pub is_broken: bool,
}

impl Damage {
    pub(super) const TABLE: Table = Table::Damages;

    pub(super) fn read(reader: &Reader<'_>) -> Result<Damage, StoreError> {
        let (mut is_any, mut lacks_events) = (false, false);
        let (mut wrong, mut cut_off) = (0_u64, 0_u64);
        let table = reader.table(Self::TABLE)?;
        for batch in reader.batches(&table, i64::MIN..i64::MAX, &["kind"]) {
            let batch = batch?;
            let view = DamagesView::new(&batch)?;
            for row in 0..view.len() {
                let effect = Effect::from_kind(view.kind.get(row).unwrap_or_default());
                is_any |= !matches!(effect, Effect::Harmless | Effect::FewerSamples);
                lacks_events |= effect.lacks_events();
                wrong += u64::from(effect == Effect::Wrong);
                cut_off += u64::from(effect == Effect::CutOff);
            }
        }
        // The last event of a file whose end is missing is wrong, too.
        let is_broken = wrong > cut_off;
        Ok(Damage {
            is_any,
            lacks_events,
            is_broken,
        })
    }
}
