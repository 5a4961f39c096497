//! Traces of Windows (`.etl`) and packet captures as tables.
//!
//! [`WindowsRecording`] implements [`tables::Recording`]. Each table that Windows fills has a file in `table/`: the events
//! that it reads, and how rows are made from them. `first_pass` reads data of the whole trace, `slices` the events in
//! slices of time, and `build` runs both passes.

mod build;
mod captures;
mod event_buffer;
mod file_names;
mod first_pass;
mod frame;
mod kernel_flags;
mod kind_survey;
mod one_recording;
mod presence;
mod providers;
mod recorded_times;
mod recording;
mod register;
mod slices;
mod stack_count;
mod table;
mod time;
mod volumes;

pub use build::build;
pub use captures::{CaptureError, CaptureRecording, is_capture};
pub use kind_survey::{EventKind, KindCount, KindSurvey, learn, tracelogging_schema};
pub use one_recording::{RecordedTwice, check_one_recording};
pub use recording::{WindowsRecording, info_of, losses_of};

/// Returns the position of an event.
fn place_of(event: &etl::Event<'_>) -> tables::EventPlace {
    let place = event.place();
    tables::EventPlace {
        segment: place.segment,
        buffer_offset: place.buffer_offset,
        offset: place.offset,
    }
}
