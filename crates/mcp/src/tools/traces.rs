//! Tool `traces`: the traces in the folders of the server.

use facts::Info;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wording::{QuotedName, counted, size};

use super::Session;
use crate::answer::{Answer, More, Next, Room};
use crate::arguments;
use crate::failure::Failure;
use crate::folders::{self, TraceFile};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    glob: Option<String>,
    #[serde(default)]
    after: u64,
}

#[derive(Debug, Serialize)]
struct Content {
    answer: String,
    traces: Vec<TraceEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<More>,
    next: Vec<Next>,
}

/// Facts about a trace that its headers contain.
#[derive(Debug, Serialize)]
struct TraceEntry {
    trace: String,
    file: String,
    size: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_utc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<i64>,
    /// Reason why the file cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'static str>,
}

pub(super) fn answer(session: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let pattern = match &asked.glob {
        Some(glob) => Some(arguments::name("glob", glob)?),
        None => None,
    };
    let mut files = session.server.folders.traces();
    files.retain(|file| {
        let pattern = pattern.as_deref();
        pattern.is_none_or(|pattern| {
            let name = file.name.rsplit('/').next().unwrap_or(&file.name);
            folders::matches(pattern, &file.name) || folders::matches(pattern, name)
        })
    });
    let all = files.len() as u64;
    let rest = files
        .into_iter()
        .skip(usize::try_from(asked.after).unwrap_or(usize::MAX));
    let mut room = Room::new(None).without(400);
    let mut traces: Vec<TraceEntry> = Vec::new();
    for file in rest {
        session.check()?;
        let listed = listed(session, &file);
        if !room.take(&listed) {
            break;
        }
        traces.push(listed);
    }
    let shown = asked.after.saturating_add(traces.len() as u64);
    let first = traces.iter().find(|trace| trace.problem.is_none());
    let next = first.map(|first| Next {
        tool: "explain",
        arguments: json!({ "trace": first.trace }),
        why: "says why the machine lagged",
    });
    Answer::new(&Content {
        answer: counted(all, "trace", "traces") + ".",
        traces,
        more: (shown < all).then(|| More {
            after: shown,
            left: Some(all - shown),
        }),
        next: next.into_iter().collect(),
    })
}

fn listed(session: &Session<'_>, file: &TraceFile) -> TraceEntry {
    let mut listed = TraceEntry {
        trace: file.handle.clone(),
        file: file.shown(),
        size: size(file.bytes),
        machine: None,
        system: None,
        start_utc: None,
        duration_ns: None,
        problem: None,
    };
    if let Some(open) = session.server.opened.known(file) {
        let listed = listed.with(&open.headers());
        return if open.store.info().is_linux() {
            TraceEntry {
                system: Some("Linux".to_owned()),
                ..listed
            }
        } else {
            listed
        };
    }
    if import_linux::is_recording(&file.path) {
        listed.system = Some("Linux".to_owned());
        return listed;
    }
    if import_windows::is_capture(&file.path) || imports::is_parquet(&file.path) {
        return listed;
    }
    match imports::open(std::slice::from_ref(&file.path)) {
        Ok(recording) => listed.with(&Info::from_headers(recording.info())),
        Err(_) => TraceEntry {
            problem: Some("this file cannot be read as a trace"),
            ..listed
        },
    }
}

impl TraceEntry {
    /// Adds the facts that the headers of the trace contain.
    fn with(self, info: &Info) -> TraceEntry {
        TraceEntry {
            machine: (info.system.computer.as_ref()).map(|name| QuotedName(name).to_string()),
            system: info.system.build.map(|_| info.system.name()),
            start_utc: info.trace.start.clone(),
            duration_ns: info
                .sessions
                .iter()
                .filter_map(|session| session.duration_ns)
                .max(),
            ..self
        }
    }
}
