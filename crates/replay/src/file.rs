//! Files of workloads: lines of JSON. The first line is the header, and each further line is one item.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use sim::replay::{Interrupt, Machine, Moment, Process, Request, Thread, WorkloadError};

use crate::recorded_workload::{Note, Record, RecordedWorkload};

/// Name and version of the format, in the header.
const FORMAT: &str = "laglab workload 1";

/// Start of a file of this version, as [`write`] writes it.
const HEADER: &[u8] = b"{\"header\":{\"format\":\"laglab workload 1\"";

/// Maximum length of a line in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Line of a file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Header(Header),
    Process(Process),
    Thread { thread: Thread, recorded: Record },
    Interrupt(Interrupt),
    Request(Request),
    Moment(Moment),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    duration_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured_ns: Option<(u64, u64)>,
    machine: Machine,
    #[serde(default)]
    notes: Vec<Note>,
}

/// Error in a file of a workload.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A line is wrong.
    #[error("line {line}: {message}")]
    Line {
        /// Number of the line, counted from 1.
        line: usize,
        /// Description of the fault.
        message: String,
    },
    /// The first line is not the header of a workload.
    #[error("it is not a workload: its first line is not a header with the format `{FORMAT}`")]
    Format,
    /// The lines do not fit together.
    #[error("the workload is wrong: {0}; correct the file, or extract it again with -o")]
    Wrong(#[from] WorkloadError),
}

/// Returns true if the first bytes of a file are those of a workload.
pub fn is_workload(first: &[u8]) -> bool {
    first.starts_with(b"{\"header\":{\"format\":\"laglab workload")
}

/// Writes a workload.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(recorded: &RecordedWorkload, mut out: impl Write) -> io::Result<()> {
    let workload = &recorded.workload;
    let mut line = |line: &Line| {
        serde_json::to_writer(&mut out, line)?;
        out.write_all(b"\n")
    };
    line(&Line::Header(Header {
        format: FORMAT.to_owned(),
        duration_ns: workload.duration_ns,
        measured_ns: recorded.measured,
        machine: workload.machine.clone(),
        notes: recorded.notes.clone(),
    }))?;
    for process in &workload.processes {
        line(&Line::Process(process.clone()))?;
    }
    for (n, thread) in workload.threads.iter().enumerate() {
        line(&Line::Thread {
            thread: thread.clone(),
            recorded: recorded.threads[n].clone(),
        })?;
    }
    for interrupt in &workload.interrupts {
        line(&Line::Interrupt(interrupt.clone()))?;
    }
    for request in &workload.requests {
        line(&Line::Request(*request))?;
    }
    for moment in &workload.moments {
        line(&Line::Moment(*moment))?;
    }
    out.flush()
}

/// Reads a workload.
///
/// # Errors
/// Returns an error if the input cannot be read, a line is wrong, or the lines do not fit together.
pub fn read(mut input: impl BufRead) -> Result<RecordedWorkload, FileError> {
    let mut recorded = RecordedWorkload::default();
    let mut text = Vec::new();
    for number in 1.. {
        text.clear();
        let read = io::Read::take(&mut input, MOST_BYTES).read_until(b'\n', &mut text)?;
        if read == 0 && number > 1 {
            break;
        }
        let wrong = |message: String| FileError::Line {
            line: number,
            message,
        };
        if text.trim_ascii().is_empty() && number > 1 {
            continue;
        }
        let line = serde_json::from_slice(&text);
        match (line, number) {
            (Ok(Line::Header(header)), 1) if header.format == FORMAT => {
                recorded.workload.machine = header.machine;
                recorded.workload.duration_ns = header.duration_ns;
                recorded.measured = header.measured_ns;
                recorded.notes = header.notes;
            }
            (Err(error), 1) if text.starts_with(HEADER) => return Err(wrong(error.to_string())),
            (_, 1) => return Err(FileError::Format),
            (Err(error), _) => return Err(wrong(error.to_string())),
            (Ok(Line::Header(_)), _) => return Err(wrong("a second header".to_owned())),
            (Ok(Line::Process(process)), _) => recorded.workload.processes.push(process),
            (
                Ok(Line::Thread {
                    thread,
                    recorded: record,
                }),
                _,
            ) => {
                recorded.workload.threads.push(thread);
                recorded.threads.push(record);
            }
            (Ok(Line::Interrupt(interrupt)), _) => recorded.workload.interrupts.push(interrupt),
            (Ok(Line::Request(request)), _) => recorded.workload.requests.push(request),
            (Ok(Line::Moment(moment)), _) => recorded.workload.moments.push(moment),
        }
    }
    recorded.workload.moments.sort_by_key(|moment| moment.at_ns);
    recorded.workload.check()?;
    if let Some((from_ns, to_ns)) = recorded.measured {
        recorded.workload.check_measured(&(from_ns..to_ns))?;
    }
    Ok(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::replay::{Step, Wait};

    #[test]
    fn a_workload_is_read_as_it_was_written() {
        let mut recorded = RecordedWorkload::default();
        recorded.workload.duration_ns = 1_000;
        recorded.workload.processes.push(Process {
            id: 4,
            name: Some("a.exe".to_owned()),
            idle_class: false,
        });
        recorded.workload.threads.push(Thread {
            starts_ns: Some(0),
            steps: vec![Step::Run(5), Step::Wait(Wait::Sleep(7)), Step::Exit],
            ..Thread::default()
        });
        recorded.threads.push(Record::default());
        let mut bytes = Vec::new();
        write(&recorded, &mut bytes).unwrap();
        assert!(is_workload(&bytes));
        assert_eq!(read(&bytes[..]).unwrap(), recorded);

        let text = String::from_utf8(bytes).unwrap();
        for (from, to, expected) in [
            ("\"process\":0", "\"process\":7", "there is no process 7"),
            ("laglab workload 1", "laglab workload 9", "not a workload"),
            ("{\"run\":5}", "{\"walk\":5}", "line 3"),
            ("\"cpus\":1", "\"cpus\":0", "0 processors"),
            ("\"nodes\":1", "\"nodes\":-1", "line 1: invalid value"),
            ("\"notes\":[]", "\"note\":[]", "unknown field `note`"),
            (
                "\"process\":0",
                "\"process\":0,\"affinty\":[0]",
                "unknown field `affinty`",
            ),
            (
                "\"notes\":[]",
                "\"measured_ns\":[9,9]",
                "measured time, 9 to 9 ns",
            ),
            (
                "\"notes\":[]",
                "\"measured_ns\":[1000,2000]",
                "no part of its 1000 ns",
            ),
            ("\"starts_ns\":0,", "", "thread 0 has no start"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = read(text.replace(from, to).as_bytes())
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(read(&b""[..]).is_err());
    }
}
