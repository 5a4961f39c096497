//! The options of the reports.

use clap::ValueEnum;
use wording::{DefaultUnit, parse_duration};
use xperf::Filter;

use crate::cli::symbols::SymbolArgs;

/// Options of one report.
pub(in crate::cli) trait ReportArgs: clap::Args {
    /// Type of the report in the crate `xperf`.
    type Report: xperf::Report;

    /// Returns the report that the options select.
    fn report(&self) -> Self::Report;

    /// Returns the filter of the report's rows. The trace must contain what it names.
    fn filter(&self) -> Filter {
        Filter::default()
    }
}

/// Parses the length of an interval. A number without a unit is milliseconds. Returns nanoseconds.
fn length(text: &str) -> Result<i64, &'static str> {
    parse_duration(text, DefaultUnit::Milliseconds)
        .filter(|length| *length > 0)
        .ok_or("expected milliseconds, or a time such as 1s or 500us")
}

/// Process filter of a report. Without options, it selects all processes.
#[derive(clap::Args, Debug)]
pub(super) struct ProcessFilter {
    /// Show only processes with this id, or with this text in their name (case-insensitive)
    #[arg(long, value_name = "NAME|PID")]
    process: Vec<String>,
}

impl ProcessFilter {
    fn filter(&self) -> Filter {
        Filter {
            process: self.process.clone(),
            ..Filter::default()
        }
    }
}

/// Grouping of addresses.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct PlaceOptions {
    /// Group addresses by module or function
    #[arg(long, value_enum, default_value_t)]
    by: By,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// Grouping of samples, routines and stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// Module that contains the address
    #[default]
    Module,
    /// Function that contains the address; without symbols, offset in the module
    Function,
}

impl PlaceOptions {
    fn options(&self) -> xperf::PlaceOptions {
        xperf::PlaceOptions {
            by: match self.by {
                By::Module => xperf::By::Module,
                By::Function => xperf::By::Function,
            },
            symbols: self.symbols.options(),
        }
    }
}

/// Options of `laglab cpudisk`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct CpuDisk {
    /// Split the time into intervals of this length, in milliseconds
    #[arg(long, value_name = "MS", value_parser = length)]
    interval: Option<i64>,
    #[command(flatten)]
    processes: ProcessFilter,
}

impl ReportArgs for CpuDisk {
    type Report = xperf::CpuDisk;

    fn report(&self) -> xperf::CpuDisk {
        xperf::CpuDisk {
            interval: self.interval,
        }
    }

    fn filter(&self) -> Filter {
        self.processes.filter()
    }
}

/// Options of `laglab cswitch`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct CSwitch {
    /// Sum by process or thread [default: one line per switch]
    #[arg(long, value_enum)]
    by: Option<SumBy>,
    #[command(flatten)]
    processes: ProcessFilter,
    /// Show only switches to the thread with this id
    #[arg(long, value_name = "TID")]
    thread: Vec<u32>,
    /// Show only switches on this CPU
    #[arg(long)]
    cpu: Vec<u16>,
}

/// Level at which CPU use is summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SumBy {
    /// Sum for each process, like `xperf -a cswitch -process`
    Process,
    /// Sum for each thread, like `xperf -a cswitch -thread`
    Thread,
}

impl ReportArgs for CSwitch {
    type Report = xperf::CSwitch;

    fn report(&self) -> xperf::CSwitch {
        xperf::CSwitch {
            by: self.by.map(|by| match by {
                SumBy::Process => xperf::Whose::Process,
                SumBy::Thread => xperf::Whose::Thread,
            }),
        }
    }

    fn filter(&self) -> Filter {
        Filter {
            thread: self.thread.clone(),
            cpu: self.cpu.clone(),
            ..self.processes.filter()
        }
    }
}

/// Options of `laglab diskio`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct DiskIo {
    /// Show each request, in order of completion
    #[arg(long, conflicts_with_all = ["summary", "util"])]
    detail: bool,
    /// Sum by file instead of process
    #[arg(long, conflicts_with = "util")]
    summary: bool,
    /// Show the utilisation of each disk in intervals of this length, in milliseconds
    #[arg(long, value_name = "MS", num_args = 0..=1, default_missing_value = "1000", value_parser = length)]
    util: Option<i64>,
    #[command(flatten)]
    processes: ProcessFilter,
}

impl ReportArgs for DiskIo {
    type Report = xperf::DiskIo;

    fn report(&self) -> xperf::DiskIo {
        xperf::DiskIo {
            detail: self.detail,
            summary: self.summary,
            util: self.util,
        }
    }

    fn filter(&self) -> Filter {
        self.processes.filter()
    }
}

/// Options of `laglab dpcisr`. Without options it shows everything.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct DpcIsr {
    /// Show only DPCs
    #[arg(long)]
    dpc: bool,
    /// Show only interrupt service routines
    #[arg(long)]
    isr: bool,
    /// Show CPU use by module on each CPU
    #[arg(long)]
    summary: bool,
    /// Show the number of routines that took up to 1, 2, 4, … µs, by module
    #[arg(long)]
    histogram: bool,
    /// Show the use of each CPU in intervals of this length, in milliseconds
    #[arg(long, value_name = "MS", num_args = 0..=1, default_missing_value = "1000", value_parser = length)]
    interval: Option<i64>,
    /// Show a histogram of CPU use over intervals of this length, in milliseconds
    #[arg(long, value_name = "MS", num_args = 0..=1, default_missing_value = "2000", value_parser = length)]
    bucket: Option<i64>,
    /// Show only routines on this CPU
    #[arg(long)]
    cpu: Vec<u16>,
    #[command(flatten)]
    places: PlaceOptions,
}

impl ReportArgs for DpcIsr {
    type Report = xperf::DpcIsr;

    fn report(&self) -> xperf::DpcIsr {
        xperf::DpcIsr {
            dpc: self.dpc,
            isr: self.isr,
            summary: self.summary,
            histogram: self.histogram,
            interval: self.interval,
            bucket: self.bucket,
            places: self.places.options(),
        }
    }

    fn filter(&self) -> Filter {
        Filter {
            cpu: self.cpu.clone(),
            ..Filter::default()
        }
    }
}

/// Options of `laglab focuschange`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct FocusChange {
    #[command(flatten)]
    processes: ProcessFilter,
}

impl ReportArgs for FocusChange {
    type Report = xperf::FocusChange;

    fn report(&self) -> xperf::FocusChange {
        xperf::FocusChange
    }

    fn filter(&self) -> Filter {
        self.processes.filter()
    }
}

/// Options of `laglab hardfault`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct HardFault {
    /// Show each fault
    #[arg(long)]
    detail: bool,
    #[command(flatten)]
    processes: ProcessFilter,
}

impl ReportArgs for HardFault {
    type Report = xperf::HardFault;

    fn report(&self) -> xperf::HardFault {
        xperf::HardFault {
            detail: self.detail,
        }
    }

    fn filter(&self) -> Filter {
        self.processes.filter()
    }
}

/// Options of `laglab marks`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct Marks {
    #[command(flatten)]
    processes: ProcessFilter,
}

impl ReportArgs for Marks {
    type Report = xperf::Marks;

    fn report(&self) -> xperf::Marks {
        xperf::Marks
    }

    fn filter(&self) -> Filter {
        self.processes.filter()
    }
}

/// Options of `laglab process`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct Process {
    /// Show processes as a tree, below their parents
    #[arg(long)]
    tree: bool,
    #[command(flatten)]
    processes: ProcessFilter,
}

impl ReportArgs for Process {
    type Report = xperf::Process;

    fn report(&self) -> xperf::Process {
        xperf::Process { tree: self.tree }
    }

    fn filter(&self) -> Filter {
        self.processes.filter()
    }
}

/// Options of `laglab profile`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct Profile {
    /// Show modules or functions of each process
    #[arg(long)]
    detail: bool,
    #[command(flatten)]
    places: PlaceOptions,
    #[command(flatten)]
    processes: ProcessFilter,
}

impl ReportArgs for Profile {
    type Report = xperf::Profile;

    fn report(&self) -> xperf::Profile {
        xperf::Profile {
            detail: self.detail,
            places: self.places.options(),
        }
    }

    fn filter(&self) -> Filter {
        self.processes.filter()
    }
}

/// Options of `laglab readythread`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct ReadyThread {
    /// Show only wakes of the thread with this id
    #[arg(long, value_name = "TID")]
    thread: Vec<u32>,
    #[command(flatten)]
    processes: ProcessFilter,
}

impl ReportArgs for ReadyThread {
    type Report = xperf::ReadyThread;

    fn report(&self) -> xperf::ReadyThread {
        xperf::ReadyThread
    }

    fn filter(&self) -> Filter {
        Filter {
            thread: self.thread.clone(),
            ..self.processes.filter()
        }
    }
}

/// Options of `laglab stack`.
#[derive(clap::Args, Debug)]
pub(in crate::cli) struct Stack {
    /// Events whose stacks are counted
    #[arg(long, value_enum, default_value_t)]
    event: Stacked,
    /// Also show callers and callees of modules or functions on at least this percentage of stacks
    #[arg(long, value_name = "MIN%", num_args = 0..=1, default_missing_value = "1")]
    butterfly: Option<f64>,
    #[command(flatten)]
    places: PlaceOptions,
    #[command(flatten)]
    processes: ProcessFilter,
}

/// Events that have stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Stacked {
    /// Samples of the profile timer: code that uses CPU time
    #[default]
    Profile,
    /// Switches to a thread: code that waited
    Cswitch,
    /// Wakes of threads: code that ended waits
    Readythread,
}

impl ReportArgs for Stack {
    type Report = xperf::Stack;

    fn report(&self) -> xperf::Stack {
        xperf::Stack {
            event: match self.event {
                Stacked::Profile => xperf::Stacked::Profile,
                Stacked::Cswitch => xperf::Stacked::Cswitch,
                Stacked::Readythread => xperf::Stacked::Readythread,
            },
            butterfly: self.butterfly,
            places: self.places.options(),
        }
    }

    fn filter(&self) -> Filter {
        self.processes.filter()
    }
}
