//! Events as documented tables.
//!
//! A format implements [`Recording`]: it gives facts about its files and rows of tables. A [`Store`] keeps the tables of
//! a recording in files, so that a recording is read only once. A table is a struct of columns, and can be converted to
//! Arrow record batches. Systems use ids and addresses again. Therefore trackers find the process, thread or image to
//! which an id or address belonged at a given time.
//!
//! Times are nanoseconds since the start of the recording. Unknown values are null, never 0.
//!
//! Each table is declared once, in its file in `table/`. The documentation and the Arrow schema of the table
//! come from this declaration. [`reference()`] generates `docs/tables.md` from all declarations.

mod activity;
mod build;
mod codes;
mod column;
mod doubtful;
mod first_pass;
mod identities;
mod in_memory;
mod intervals;
mod labels;
mod memory;
mod plan;
mod recorded_times;
mod recording;
mod reference;
mod register;
mod run;
mod scheduling;
mod schema;
mod slice;
mod slices;
mod stack_index;
mod store_error;
mod stored_table;
mod table;
mod time;
mod timed_values;
mod trace_store;
mod trackers;
mod unreadable;
mod view;
mod volumes;
mod wait_kind;

pub use build::{Cancelled, Options};
pub use codes::{linux_states, thread_state, wait_reason};
pub use column::{Addresses, Bytes, Lists, Named, Names, Nullable, NullableNames, Text};
pub use doubtful::{DoubtfulRuns, MAX_WEIGHT_NS};
pub use identities::{Identities, Process, file_name, is_generated, module_name};
pub use in_memory::Tables;
pub use labels::Functions;
pub use recording::{
    Buffers, CodeMaker, GiveRows, Losses, OperatingSystem, RecordedSession, Recording,
    RecordingInfo, SessionHeader,
};
pub use reference::reference;
pub use rules::kinds::{InterruptKind, NetworkAction};
pub use schema::{ColumnSchema, RowInterval, TableSchema, WrongType};
pub use store::{CacheFolder, CacheUsage, InputFiles, RowGroup, ScratchFolder};
pub use store_error::StoreError;
pub use stored_table::StoredTable;
pub use table::disk_io::block::{BlockEvent, Stage, disk_of_linux, kind_of_request};
pub use table::*;
pub use time::utc;
pub use trace_store::{Cache, Store};
pub use trackers::{ImageTracker, Life, Lifetimes, ProcessTracker, ThreadTracker};
pub use unreadable::{EventPlace, Unreadable};
pub use view::{AddressesView, BytesView, Flags, NullableView, TextView};
pub use wait_kind::{FutexCall, StackWait, WaitKind};

/// Parts from which formats make tables: data of rows before they are joined, and the passes over a recording.
pub mod import {
    pub use crate::activity::{Activity, CpuActivity, by_cpu as activity_by_cpu};
    pub use crate::build::{TakeSlice, counted_progress, read_events};
    pub use crate::first_pass::FirstPass;
    pub use crate::intervals::Interval;
    pub use crate::memory::memory;
    pub use crate::plan::Plan;
    pub use crate::recorded_times::{FirstAndLast, LATE_NS, RecordedTimes};
    pub use crate::register::{EventTable, Reader, ReaderSet, Register};
    pub use crate::schema::Rows;
    pub use crate::slice::{RawRows, Slice};
    pub use crate::slices::{Progress, RowSource, SLACK_NS, ends_of_slices};
    pub use crate::stack_index::{Half, StackEvents, StackIndex};
    pub use crate::timed_values::TimedValues;
    pub use crate::trackers::{FileTracker, Trackers};
    pub use crate::unreadable::UnreadableEvents;
    pub use crate::volumes::Volumes;
}
