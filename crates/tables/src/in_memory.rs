//! The tables of a trace in memory.

use arrow_array::RecordBatch;

use crate::recording::GiveRows;
use crate::table::for_each_table;
use crate::table::rows::*;
use crate::unreadable::Unreadable;
use crate::{StoreError, Table};

macro_rules! declare {
    (
        events { $($event_module:ident: $event:ident,)+ }
        lifetimes { $($life_module:ident: $life:ident,)+ }
        whole { $($whole_module:ident: $whole:ident,)+ }
        derived { $($derived_module:ident: $derived:ident,)+ }
    ) => {
        /// The tables of a trace in memory. Tables that were not requested are empty.
        ///
        /// A table of events has one element for each CPU that has rows. The elements are in the order of
        /// CPUs. The rows of an element are sorted by time.
        #[derive(Debug, Default)]
        pub struct Tables {
            $(#[doc = concat!("`", stringify!($event_module), "`, by CPU.")]
            pub $event_module: Vec<$event>,)+
            $(#[doc = concat!("`", stringify!($life_module), "`.")]
            pub $life_module: $life,)+
            $(#[doc = concat!("`", stringify!($whole_module), "`.")]
            pub $whole_module: $whole,)+
            $(#[doc = concat!("`", stringify!($derived_module), "`.")]
            pub $derived_module: $derived,)+
            /// Events that are missing from tables. Each element is for one table. The payload of such an
            /// event is too short for its version, or its version is too old and unknown.
            pub unreadable: Vec<Unreadable>,
        }

        impl Tables {
            /// Moves the requested tables of the whole trace from `other` to `self`.
            pub fn take_whole(&mut self, other: Tables, wanted: &[Table]) {
                $(if wanted.contains(&Table::$life) {
                    self.$life_module = other.$life_module;
                })+
                $(if wanted.contains(&Table::$whole) {
                    self.$whole_module = other.$whole_module;
                })+
                if wanted.contains(&Table::Stacks) {
                    self.stacks = other.stacks;
                }
            }

            /// Removes the rows of a table and returns them as sorted Arrow record batches. Tables of events
            /// have one batch per CPU. The list is empty if the table has no rows or was not requested.
            pub fn take_batches(&mut self, table: Table) -> Vec<RecordBatch> {
                match table {
                    $(Table::$event => std::mem::take(&mut self.$event_module)
                        .into_iter()
                        .map($event::into_batch)
                        .collect(),)+
                    $(Table::$life => batch(std::mem::take(&mut self.$life_module).into_batch()),)+
                    $(Table::$whole => batch(std::mem::take(&mut self.$whole_module).into_batch()),)+
                    $(Table::$derived => batch(std::mem::take(&mut self.$derived_module).into_batch()),)+
                }
            }
        }
    };
}

for_each_table!(declare);

impl Tables {
    /// Removes the rows of the tables `wanted` and passes them to `give`.
    ///
    /// # Errors
    /// Returns an error if `give` fails.
    pub fn give(&mut self, wanted: &[Table], give: &mut GiveRows<'_>) -> Result<(), StoreError> {
        for table in wanted {
            for batch in self.take_batches(*table) {
                give(*table, batch)?;
            }
        }
        Ok(())
    }
}

fn batch(batch: RecordBatch) -> Vec<RecordBatch> {
    match batch.num_rows() {
        0 => Vec::new(),
        _ => vec![batch],
    }
}
