//! The reports: each is a command of its own.

use clap::Subcommand;
use etl::Damage;

use super::Failure;
use super::open::TabledTrace;
use crate::output::Format;
use crate::report::{self, Recording, TimeRange, Writer};

/// The commands that report what `xperf -a` does, under its names.
#[derive(Subcommand)]
pub(super) enum Report {
    /// How long DPCs and service routines took, and what they used of the CPUs
    #[command(after_help = "Examples:\n  \
        laglab dpcisr trace.etl\n  \
        laglab dpcisr trace.etl --dpc --histogram --format csv\n  \
        laglab dpcisr trace.etl --interval 100 --range 1.5s 2s --cpu 3")]
    Dpcisr(Box<Reported<report::dpcisr::DpcIsr>>),
    /// Context switches: who ran where, from when to when, and why not sooner
    #[command(after_help = "Examples:\n  \
        laglab cswitch trace.etl --process notepad\n  \
        laglab cswitch trace.etl --by process\n  \
        laglab cswitch trace.etl --json | jq 'select(.ready_ns > 100000000)'")]
    Cswitch(Box<Reported<report::cswitch::CSwitch>>),
    /// Who made which thread ready, and what it had waited for
    Readythread(Box<Reported<report::readythread::ReadyThread>>),
    /// What each process used of the CPUs and disks
    Cpudisk(Box<Reported<report::cpudisk::CpuDisk>>),
    /// Samples of the profile timer by process and module
    Profile(Box<Reported<report::profile::Profile>>),
    /// Modules or functions on the stacks of events, with callers and callees
    #[command(after_help = "Examples:\n  \
        laglab stack trace.etl --process notepad\n  \
        laglab stack trace.etl --butterfly 5 --event cswitch")]
    Stack(Box<Reported<report::stack::Stack>>),
    /// Requests to disks by process or file, or one by one
    Diskio(Box<Reported<report::diskio::DiskIo>>),
    /// Hard page faults by process, or one by one
    Hardfault(Box<Reported<report::hardfault::HardFault>>),
    /// Which process had the window in focus, from when to when
    Focuschange(Box<Reported<report::focuschange::FocusChange>>),
    /// What programs and people wrote into the trace
    Marks(Box<Reported<report::marks::Marks>>),
    /// Processes, their lifetimes and who created them
    Process(Box<Reported<report::process::Process>>),
}

/// A report's command: what all reports share, and its own options.
#[derive(clap::Args)]
pub(super) struct Reported<R: report::Report> {
    #[command(flatten)]
    trace: TabledTrace,
    #[command(flatten)]
    report: R,
    #[command(flatten)]
    range: TimeRange,
    /// How to write it (--json is --format json)
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Report {
    pub(super) fn run(&self, json: bool) -> Result<(), Failure> {
        match self {
            Report::Dpcisr(reported) => reported.run(json),
            Report::Cswitch(reported) => reported.run(json),
            Report::Readythread(reported) => reported.run(json),
            Report::Cpudisk(reported) => reported.run(json),
            Report::Profile(reported) => reported.run(json),
            Report::Stack(reported) => reported.run(json),
            Report::Diskio(reported) => reported.run(json),
            Report::Hardfault(reported) => reported.run(json),
            Report::Focuschange(reported) => reported.run(json),
            Report::Marks(reported) => reported.run(json),
            Report::Process(reported) => reported.run(json),
        }
    }
}

impl<R: report::Report> Reported<R> {
    fn run(&self, json: bool) -> Result<(), Failure> {
        let range = self.range.get()?;
        let tables = self.trace.open()?;
        let mut wanted = self.report.tables();
        wanted.extend(tables::Identities::TABLES);
        tables.make(&wanted)?;
        let trace = Recording {
            names: tables.identities()?,
            tables,
            range,
        };
        let mut out = Writer::new(if json { Format::Json } else { self.format });
        let done = self.report.write(&trace, &mut out);
        out.finish()?;
        say_what_is_missing(&trace);
        done?;
        if self.report.tables().contains(&tables::Table::CpuRuns) {
            trace.say_if_switches_are_missing()?;
        }
        Ok(())
    }
}

/// Says on stderr what the figures lack because it was lost or cannot be read.
fn say_what_is_missing(trace: &Recording) {
    let store = &trace.tables.store;
    let damage = store.trace().damage();
    if damage.events_lost > 0 || damage.buffers_lost > 0 {
        super::say(&format!(
            "{} events and {} buffers were lost while the trace was recorded: counts and sums are \
             too small, and figures made of several events may be wrong",
            damage.events_lost, damage.buffers_lost
        ));
    }
    super::say_what_was_skipped(store.trace(), &Damage::default());
    let unreadable: u64 = store.unreadable().iter().map(|events| events.count).sum();
    if unreadable > 0 {
        super::say(&format!(
            "{unreadable} events could not be read and are left out"
        ));
    }
}
