//! Rows of the tables of events, one slice of time at a time.

use std::collections::BTreeMap;

use crate::column::{KnownValue, Place};
use crate::in_memory::Tables;
use crate::recording::GiveRows;
use crate::register::{EventTable, ReaderSet};
use crate::schema::Rows;
use crate::table::for_each_table;
use crate::table::rows::*;
use crate::trackers::Trackers;
use crate::{StoreError, Table};

macro_rules! declare {
    (
        events { $($module:ident: $table:ident,)+ }
        $($group:ident { $($other:tt)* })+
    ) => {
        /// Data from which the rows of tables of events are made. It belongs to one CPU stream or to all CPU
        /// streams.
        #[derive(Default)]
        pub struct RawRows {
            $(#[doc = concat!("Data of `", stringify!($module), "`.")]
            pub $module: <$table as EventTable>::Raw,)+
        }

        /// State that tables keep between consecutive slices.
        #[derive(Default)]
        pub(crate) struct JoinStates {
            $($module: <$table as EventTable>::State,)+
        }

        /// Rows of one slice of time, sorted.
        #[derive(Debug, Default)]
        pub struct Slice {
            $(#[doc = concat!("`", stringify!($module), "`.")]
            pub $module: $table,)+
            /// `cpu_runs`.
            pub cpu_runs: CpuRuns,
        }

        impl Table {
            /// Returns true if the rows of the table are made from the events of time slices.
            pub fn is_of_events(self) -> bool {
                matches!(self, Table::CpuRuns $(| Table::$table)+)
            }
        }

        impl RawRows {
            /// Removes the data before the time `end_ns` from the streams. Returns this data, merged.
            pub fn take(mut streams: Vec<&mut RawRows>, end_ns: i64) -> RawRows {
                $(let $module: Vec<<$table as EventTable>::Raw> = streams
                    .iter_mut()
                    .map(|stream| take_before(&mut stream.$module, end_ns))
                    .collect();)+
                let mut merged = RawRows::default();
                rayon::scope(|scope| {
                    $(scope.spawn(|_| merged.$module = Rows::merge($module));)+
                });
                merged
            }

            /// Makes the rows of the tables `wanted`. The scheduler adds its rows and columns later.
            pub(crate) fn join(
                &mut self,
                states: &mut JoinStates,
                trackers: &Trackers<'_>,
                wanted: ReaderSet,
            ) -> Slice {
                let mut slice = Slice::default();
                rayon::scope(|scope| {
                    $(if wanted.has_table(Table::$table) && self.$module.rows() > 0 {
                        let (raw, state) = (&mut self.$module, &mut states.$module);
                        let rows = &mut slice.$module;
                        scope.spawn(move |_| *rows = $table::join(raw, state, trackers));
                    })+
                });
                slice
            }
        }

        impl JoinStates {
            /// Makes the remaining rows at the end of the trace.
            pub(crate) fn finish(
                &mut self,
                last_ns: i64,
                trackers: &Trackers<'_>,
                wanted: ReaderSet,
            ) -> Slice {
                let mut slice = Slice::default();
                $(if wanted.has_table(Table::$table) {
                    slice.$module = $table::finish(&mut self.$module, last_ns, trackers);
                })+
                slice
            }
        }

        impl Slice {
            /// Passes the rows to `give` as record batches.
            pub fn give(self, give: &mut GiveRows<'_>) -> Result<(), StoreError> {
                $(if !self.$module.is_empty() {
                    give(Table::$table, self.$module.into_batch())?;
                })+
                if !self.cpu_runs.is_empty() {
                    give(Table::CpuRuns, self.cpu_runs.into_batch())?;
                }
                Ok(())
            }
        }

        impl Tables {
            /// Adds the rows of a slice.
            pub fn append(&mut self, slice: Slice) {
                $(if !slice.$module.is_empty() {
                    let rows = [slice.$module];
                    let mut cpus: BTreeMap<u16, Vec<Place>> = BTreeMap::new();
                    for row in 0..rows[0].len() {
                        let places = cpus.entry(cpu_of(&rows[0].cpu, row)).or_default();
                        places.push(Place { part: 0, row: row as u32 });
                    }
                    for (cpu, order) in cpus {
                        let part = $table::gather(&rows, &order);
                        let cpu_of = |table: &$table| cpu_of(&table.cpu, 0);
                        match self.$module.binary_search_by_key(&cpu, cpu_of) {
                            Ok(at) => self.$module[at].append(part),
                            Err(at) => self.$module.insert(at, part),
                        }
                    }
                })+
                self.cpu_runs.append(slice.cpu_runs);
            }
        }
    };
}

for_each_table!(declare);

/// Returns the CPU of a row. If the CPU is unknown, returns `u16::MAX`.
fn cpu_of(cpus: &impl KnownValue<u16>, row: usize) -> u16 {
    cpus.known(row).unwrap_or(u16::MAX)
}

/// Sorts the rows of one stream. Removes the rows before `end_ns` and returns the removed rows.
fn take_before<T: Rows>(rows: &mut T, end_ns: i64) -> T {
    rows.sort();
    let rest = match end_ns {
        i64::MAX => T::default(),
        _ => {
            let mut rest = rows.split_off(end_ns);
            // Memory is reserved for the next slice, because it has about the same number of rows.
            rest.reserve(rows.rows());
            rest
        }
    };
    std::mem::replace(rows, rest)
}
