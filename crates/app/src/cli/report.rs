//! Reports in the style of `xperf -a`. Each report is a command.

mod args;

use clap::Subcommand;
use xperf::{Filter, Recording, Report as _, Writer};

use super::Failure;
use super::open::TabledTrace;
use super::scope::{self, TimeArgs};
use crate::output::{self, Format, counted};
use args::ReportArgs;

/// Commands for the reports of `xperf -a`, with the same names.
#[derive(Subcommand)]
pub(super) enum Report {
    /// Durations and CPU use of DPCs and interrupt service routines
    #[command(after_help = "Examples:\n  \
        laglab dpcisr trace.etl\n  \
        laglab dpcisr trace.etl --dpc --histogram --format csv\n  \
        laglab dpcisr trace.etl --interval 100 --from 1.5 --to 2 --cpu 3")]
    Dpcisr(Box<ReportCommand<args::DpcIsr>>),
    /// Context switches: which thread ran on which CPU, when, and how long it waited before
    #[command(after_help = "Examples:\n  \
        laglab cswitch trace.etl --process notepad\n  \
        laglab cswitch trace.etl --by process\n  \
        laglab cswitch trace.etl --json | jq 'select(.ready_ns > 100000000)'")]
    Cswitch(Box<ReportCommand<args::CSwitch>>),
    /// Wakes of threads: the waking thread and the reason of the wait
    Readythread(Box<ReportCommand<args::ReadyThread>>),
    /// CPU and disk use by process
    Cpudisk(Box<ReportCommand<args::CpuDisk>>),
    /// Samples of the profile timer by process and module
    Profile(Box<ReportCommand<args::Profile>>),
    /// Modules or functions on the stacks of events, with callers and callees
    #[command(after_help = "Examples:\n  \
        laglab stack trace.etl --process notepad\n  \
        laglab stack trace.etl --butterfly 5 --event cswitch")]
    Stack(Box<ReportCommand<args::Stack>>),
    /// Disk requests: sums by process or file, or each request
    Diskio(Box<ReportCommand<args::DiskIo>>),
    /// Hard page faults: sums by process, or each fault
    Hardfault(Box<ReportCommand<args::HardFault>>),
    /// Processes that had the focus, with start and end
    Focuschange(Box<ReportCommand<args::FocusChange>>),
    /// Marks that programs and users wrote into the trace
    Marks(Box<ReportCommand<args::Marks>>),
    /// Processes with lifetimes and parents
    Process(Box<ReportCommand<args::Process>>),
}

/// Arguments of a report's command: options of this report and options of all reports.
#[derive(clap::Args)]
pub(super) struct ReportCommand<R: ReportArgs> {
    #[command(flatten)]
    trace: TabledTrace,
    #[command(flatten)]
    report: R,
    #[command(flatten)]
    time: TimeArgs,
    /// Format of the output (--json is --format json)
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

impl<R: ReportArgs> ReportCommand<R> {
    fn run(&self, json: bool) -> Result<(), Failure> {
        let report = self.report.report();
        let tables = self.trace.open_any()?;
        let mut wanted = report.tables();
        wanted.extend(tables::Identities::TABLES);
        tables.make(&wanted)?;
        let range = self.time.range(&tables)?.unwrap_or(i64::MIN..i64::MAX);
        let trace = Recording {
            names: tables.identities()?,
            tables,
            range,
            filter: self.report.filter(),
        };
        check(&trace)?;
        let format = match if json { Format::Json } else { self.format } {
            Format::Text => xperf::Format::Text,
            Format::Json => xperf::Format::Json,
            Format::Csv => xperf::Format::Csv,
        };
        let mut out = Writer::new(format, Box::new(output::for_programs()));
        let done = report.write(&trace, &mut out);
        out.finish()?;
        out.warnings()
            .iter()
            .for_each(|warning| crate::output::say(warning));
        if trace.tables.store().info().is_linux() {
            super::warn_of_linux_damage(trace.tables.store())?
        } else {
            warn_of_missing_events(&trace)
        }
        done?;
        if report.tables().contains(&tables::Table::CpuRuns) {
            let warnings = [trace.missing_switches()?, trace.left_out_runs()?];
            for warning in warnings.into_iter().flatten() {
                crate::output::say(&warning);
            }
        }
        Ok(())
    }
}

/// Returns an error if the trace does not contain a process, thread or CPU that the filter names.
fn check(trace: &Recording) -> Result<(), Failure> {
    let Recording { names, filter, .. } = trace;
    // Without events of processes and threads, only the ids in other events are known.
    if names.processes().next().is_some() {
        for text in &filter.process {
            let one = Filter {
                process: vec![text.clone()],
                ..Filter::default()
            };
            if !one.has_any_process(names) {
                return Err(scope::unknown_process(names, text));
            }
        }
    }
    if names.thread_rows() > 0 {
        for id in &filter.thread {
            scope::check_thread("--thread", names, *id)?;
        }
    }
    scope::check_cpus(&filter.cpu, trace)
}

/// Prints on stderr how many events of a trace of Windows are lost, damaged or unreadable.
fn warn_of_missing_events(trace: &Recording) {
    let store = trace.tables.store();
    let losses = store.info().losses;
    if losses.events_lost > 0 || losses.buffers_lost > 0 {
        crate::output::say(&format!(
            "{} and {} were lost while the trace was recorded: counts and sums are too small, and \
             figures computed from several events may be wrong",
            counted(losses.events_lost, "event", "events"),
            counted(losses.buffers_lost, "buffer", "buffers")
        ));
    }
    super::warn_of_faults(losses.faults);
    let unreadable: u64 = store.unreadable().iter().map(|events| events.count).sum();
    if unreadable > 0 {
        crate::output::say(&format!(
            "{} left out",
            counted(
                unreadable,
                "event could not be read and is",
                "events could not be read and are"
            )
        ));
    }
}
