//! Metrics of traces, as the user names them.

use std::fmt;
use std::str::FromStr;

use tables::{DoubtfulRuns, Identities, Table};

/// Metric of a trace. A trace is one run, and each occurrence of the metric in the trace is one sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceMetric {
    /// Time that ready threads wait for a CPU.
    Ready(Threads),
    /// Time from the start of a sleep until the thread runs again. Traces do not contain the requested
    /// duration of the sleep.
    Sleep(Threads),
    /// Duration of DPCs, excluding the routines that interrupt them.
    Dpc(Option<Routine>),
    /// Duration of interrupt service routines, excluding the routines that interrupt them.
    Isr(Option<Routine>),
    /// Time that a disk works on a request.
    Disk {
        /// Kind of request: `read`, `write` or `flush`. `None` for all kinds.
        kind: Option<&'static str>,
        /// Number of the disk. `None` for all disks.
        disk: Option<u32>,
    },
    /// Time from a press of a key or mouse button until a process gets the focus. The text is the name of the
    /// process. `None` for any process.
    InputToFocus(Option<String>),
}

/// Threads that a metric includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Name or id of the process. `None` for all processes.
    pub process: Option<String>,
    /// Name or id of the thread. `None` for all threads.
    pub thread: Option<String>,
}

/// Interrupt routines that a metric includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// File name of the module.
    pub module: String,
    /// Offset of the routine in the module; `None` for all routines.
    pub offset: Option<u64>,
}

/// Error for the text of a metric that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownMetric(String);

/// Kinds of disk requests.
const REQUESTS: [&str; 3] = ["read", "write", "flush"];

impl TraceMetric {
    /// Forms in which the user can write metrics, for help texts and error messages.
    pub const FORMS: &'static str = "ready[:PROGRAM[/THREAD]], sleep[:PROGRAM[/THREAD]], \
         dpc[:MODULE[+0xOFFSET]], isr[:MODULE[+0xOFFSET]], disk[:read|write|flush][:NUMBER], \
         input-to-focus[:PROGRAM]";

    /// Returns the tables that must have rows in a trace. If one of these tables has no rows, the trace did
    /// not record the metric.
    pub fn recorded_in(&self) -> &'static [Table] {
        match self {
            TraceMetric::Ready(_) => &[Table::CpuRuns, Table::ReadyThreads],
            TraceMetric::Sleep(_) => &[Table::CpuRuns],
            TraceMetric::Dpc(_) | TraceMetric::Isr(_) => &[Table::Interrupts],
            TraceMetric::Disk { .. } => &[Table::DiskIo],
            TraceMetric::InputToFocus(_) => &[Table::Input, Table::Focus],
        }
    }

    /// Returns all tables from which the metric is read.
    pub fn tables(&self) -> Vec<Table> {
        [
            self.recorded_in(),
            &Identities::TABLES,
            &DoubtfulRuns::TABLES,
        ]
        .concat()
    }
}

impl FromStr for TraceMetric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<TraceMetric, UnknownMetric> {
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest.trim())),
            None => (text, None),
        };
        if rest == Some("") {
            return Err(UnknownMetric(format!(
                "a name is missing after `{kind}:`; write `{kind}` without the colon for all of them, or one of {}",
                TraceMetric::FORMS
            )));
        }
        match kind.trim() {
            "ready" => Ok(TraceMetric::Ready(threads(rest))),
            "sleep" => Ok(TraceMetric::Sleep(threads(rest))),
            "dpc" => Ok(TraceMetric::Dpc(rest.map(routine).transpose()?)),
            "isr" => Ok(TraceMetric::Isr(rest.map(routine).transpose()?)),
            "disk" => disk(rest),
            "input-to-focus" => Ok(TraceMetric::InputToFocus(rest.map(str::to_owned))),
            other => Err(UnknownMetric(format!(
                "unknown metric `{other}`; known are {}",
                TraceMetric::FORMS
            ))),
        }
    }
}

fn threads(name: Option<&str>) -> Threads {
    let (process, thread) = match name.map(|name| name.split_once('/').unwrap_or((name, ""))) {
        Some((process, thread)) => (process, thread),
        None => ("", ""),
    };
    let part = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Threads {
        process: part(process),
        thread: part(thread),
    }
}

fn routine(name: &str) -> Result<Routine, UnknownMetric> {
    if name.contains('!') {
        return Err(UnknownMetric(format!(
            "`{name}` names a function, which needs symbols; give the module, or its name and an offset such as \
             ndis.sys+0x1a2b"
        )));
    }
    // The name of a module may itself contain a plus sign.
    let split = name.rsplit_once("+0x");
    let Some((module, digits)) = split.filter(|(module, _)| !module.is_empty()) else {
        return Ok(Routine {
            module: name.to_owned(),
            offset: None,
        });
    };
    let offset = u64::from_str_radix(digits, 16)
        .map_err(|_| UnknownMetric(format!("`0x{digits}` is not a hexadecimal offset")))?;
    Ok(Routine {
        module: module.to_owned(),
        offset: Some(offset),
    })
}

fn disk(filter: Option<&str>) -> Result<TraceMetric, UnknownMetric> {
    let (mut kind, mut disk) = (None, None);
    for part in filter.into_iter().flat_map(|filter| filter.split(':')) {
        let named = REQUESTS.into_iter().find(|known| *known == part);
        match (named, part.parse()) {
            (Some(named), _) if kind.is_none() => kind = Some(named),
            (None, Ok(number)) if disk.is_none() => disk = Some(number),
            _ => {
                return Err(UnknownMetric(format!(
                    "`{part}` is neither a kind of disk request nor the number of a disk; expected \
                     disk[:read|write|flush][:NUMBER]"
                )));
            }
        }
    }
    Ok(TraceMetric::Disk { kind, disk })
}

impl fmt::Display for TraceMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_threads = |f: &mut fmt::Formatter<'_>, what: &str, threads: &Threads| {
            write!(f, "{what} of ")?;
            if let Some(thread) = &threads.thread {
                write!(f, "thread {thread} of ")?;
            }
            f.write_str(threads.process.as_deref().unwrap_or("all programs"))
        };
        let of_routine =
            |f: &mut fmt::Formatter<'_>, what: &str, routine: &Option<Routine>| match routine {
                None => write!(f, "{what}s"),
                Some(Routine { module, offset }) => {
                    write!(f, "{what}s of {module}")?;
                    offset.map_or(Ok(()), |offset| write!(f, "+{offset:#x}"))
                }
            };
        match self {
            TraceMetric::Ready(of) => of_threads(f, "waits for a CPU", of),
            TraceMetric::Sleep(of) => of_threads(f, "sleeps", of),
            TraceMetric::Dpc(of) => of_routine(f, "DPC", of),
            TraceMetric::Isr(of) => of_routine(f, "ISR", of),
            TraceMetric::Disk { kind, disk } => {
                f.write_str(match kind {
                    None => "disk requests",
                    Some("read") => "disk reads",
                    Some("write") => "disk writes",
                    Some(_) => "disk flushes",
                })?;
                disk.map_or(Ok(()), |disk| write!(f, " of disk {disk}"))
            }
            TraceMetric::InputToFocus(None) => f.write_str("input to focus"),
            TraceMetric::InputToFocus(Some(process)) => write!(f, "input to focus of {process}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_parsed() {
        for (text, name) in [
            ("ready", "waits for a CPU of all programs"),
            ("ready:game.exe", "waits for a CPU of game.exe"),
            (
                "ready:game.exe/render",
                "waits for a CPU of thread render of game.exe",
            ),
            ("sleep:12", "sleeps of 12"),
            ("dpc", "DPCs"),
            ("dpc:ndis.sys", "DPCs of ndis.sys"),
            ("isr:a+0xb.sys+0x1F", "ISRs of a+0xb.sys+0x1f"),
            ("disk", "disk requests"),
            ("disk:write:1", "disk writes of disk 1"),
            ("disk:0", "disk requests of disk 0"),
            ("disk:flush", "disk flushes"),
            ("input-to-focus:game", "input to focus of game"),
        ] {
            assert_eq!(text.parse::<TraceMetric>().unwrap().to_string(), name);
        }
        for (text, expected) in [
            ("", "unknown metric ``"),
            ("latency", "known are ready"),
            ("ready:", "a name is missing"),
            ("dpc:ndis.sys!ndisInterruptDpc", "needs symbols"),
            ("dpc:ndis.sys+0xg", "not a hexadecimal offset"),
            ("disk:read:write", "neither a kind of disk request"),
            ("disk:99999999999", "neither a kind of disk request"),
        ] {
            let error = text.parse::<TraceMetric>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
