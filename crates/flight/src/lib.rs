//! Flight recorder of this machine. It records events of the Linux kernel into memory and keeps the events of the last
//! seconds. It saves them as a recording that laglab and `perf` can read.
//!
//! A [`Recorder`] opens the [`Event`]s of an [`Order`] on all CPUs with the system call `perf_event_open`. Ten times
//! per second, a thread moves the records of the events from the kernel's ring buffers to memory. Records older than
//! [`Order::last`] are dropped, unless [`Recorder::keep`] requested them. A [`Capture`] contains the records in memory
//! at one moment. [`Capture::write`] writes these records as `perf.data`. [`Capture::facts`] returns the text of the
//! file `FILE.proc` next to the recording. [`Cost`] contains the cost of the recording.
//!
//! ```no_run
//! # #[cfg(target_os = "linux")] {
//! use flight::{Order, Recorder};
//! let order = Order::new(record::linux::events(record::Investigation::LongWait));
//! let recorder = Recorder::start(&order)?;
//! std::thread::sleep(std::time::Duration::from_secs(5));
//! let capture = recorder.stop();
//! capture.write(&mut std::fs::File::create("x.data")?)?;
//! std::fs::write("x.data.proc", capture.facts())?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! On systems other than Linux, this crate is empty.
//!
//! Sources of the formats: `include/uapi/linux/perf_event.h` of the kernel, perf_event_open(2), and
//! `tools/perf/Documentation/perf.data-file-format.txt`.

#![cfg(target_os = "linux")]

mod attribute;
mod build_ids;
mod capture;
mod error;
mod perf_data;
mod proc_facts;
mod recorder;
mod records;
mod ring;
mod threads;
mod tracefs;

pub use capture::{Capture, Cost};
pub use error::{MissingEvent, StartError};
pub use proc_facts::own_cpus;
pub use record::linux::Event;
pub use recorder::{Order, Recorder, now_ns};
