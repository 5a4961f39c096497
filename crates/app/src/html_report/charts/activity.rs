//! What the user did and saw: the process in focus, input, frozen processes.

use std::cmp::Reverse;

use serde::Serialize;
use tables::{FocusView, Identities, InputView, ProcessFreezesView, Table};
use views::{Lane, Lanes, Rows, Timeline};

use super::{Time, process};
use crate::cli::{Failure, TraceTables};
use crate::report::recorded::batches;

/// Stretches that are shown of a table; the longest, where there are more.
const MOST_BANDS: usize = 1000;

/// Processes whose freezes are shown; those that were frozen longest.
const MOST_FROZEN: usize = 12;

/// Terminal sessions whose focus is shown.
const MOST_SESSIONS: usize = 4;

/// Kinds of input that are shown apart.
const INPUT: [(&str, &[&str]); 4] = [
    ("keys", &["key_down"]),
    ("mouse buttons", &["mouse_down", "mouse_up"]),
    ("mouse moves", &["mouse_move", "mouse_wheel"]),
    ("devices read by Windows", &["device_read_start"]),
];

/// Rows of one chart.
#[derive(Debug, Default, Serialize)]
pub(in super::super) struct Tracks {
    /// The process in focus, in one row for each terminal session.
    pub(in super::super) focus: Vec<Track>,
    /// Freezes, a row for each process.
    pub(in super::super) freezes: Vec<Track>,
    /// Input, a row for each kind.
    pub(in super::super) input: Vec<Track>,
}

/// A row.
#[derive(Debug, Serialize)]
pub(in super::super) struct Track {
    /// What it shows.
    pub(in super::super) name: String,
    /// Who the bands are about.
    names: Vec<String>,
    /// Place in `names`, beginning and end of each band.
    bands: Vec<(usize, i64, i64)>,
    /// Buckets, and how many events each has.
    ticks: Vec<(usize, u64)>,
}

pub(super) fn read(
    tables: &TraceTables,
    names: &Identities,
    time: &Time,
) -> Result<Tracks, Failure> {
    Ok(Tracks {
        focus: focus(tables, names, time)?,
        freezes: freezes(tables, names, time)?,
        input: input(tables, time)?,
    })
}

/// A stretch of time of a process in a row.
struct Band {
    /// What tells rows apart.
    row: u32,
    process: String,
    from_ns: i64,
    to_ns: i64,
}

impl Band {
    fn length(&self) -> i64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

fn named(names: &Identities, row: Option<u32>, id: u32) -> String {
    row.map_or_else(|| format!("process {id}"), |row| process(names, row))
}

fn focus(tables: &TraceTables, names: &Identities, time: &Time) -> Result<Vec<Track>, Failure> {
    let table = tables.table(Table::Focus)?;
    let columns = [
        "start_ns",
        "end_ns",
        "session_id",
        "process_id",
        "process_row",
    ];
    let mut bands = Vec::new();
    for batch in batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = FocusView::new(&batch)?;
        bands.extend((0..view.len()).map(|row| Band {
            row: view.session_id[row],
            process: named(names, view.process_row.get(row), view.process_id[row]),
            from_ns: view.start_ns[row],
            to_ns: view.end_ns[row],
        }));
        keep_longest(&mut bands);
    }
    let mut sessions: Vec<u32> = bands.iter().map(|band| band.row).collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions.truncate(MOST_SESSIONS);
    let title = |session: u32| match sessions.len() {
        1 => "in focus".to_owned(),
        _ => format!("in focus, session {session}"),
    };
    Ok(sessions
        .iter()
        .map(|session| track(title(*session), &bands, *session, time))
        .collect())
}

fn freezes(tables: &TraceTables, names: &Identities, time: &Time) -> Result<Vec<Track>, Failure> {
    let table = tables.table(Table::ProcessFreezes)?;
    let columns = ["start_ns", "end_ns", "process_id", "process_row"];
    let mut bands: Vec<Band> = Vec::new();
    for batch in batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = ProcessFreezesView::new(&batch)?;
        bands.extend((0..view.len()).map(|row| Band {
            row: view.process_id[row],
            process: named(names, view.process_row.get(row), view.process_id[row]),
            from_ns: view.start_ns[row],
            to_ns: view.end_ns[row],
        }));
        keep_longest(&mut bands);
    }
    let mut frozen: Vec<(i64, u32, &str)> = Vec::new();
    for band in &bands {
        match frozen.iter_mut().find(|(_, id, _)| *id == band.row) {
            Some((ns, _, _)) => *ns = ns.saturating_add(band.length()),
            None => frozen.push((band.length(), band.row, &band.process)),
        }
    }
    frozen.sort_by_key(|(ns, id, _)| (Reverse(*ns), *id));
    frozen.truncate(MOST_FROZEN);
    Ok(frozen
        .iter()
        .map(|(_, id, name)| track(format!("{name} frozen"), &bands, *id, time))
        .collect())
}

fn keep_longest(bands: &mut Vec<Band>) {
    if bands.len() > MOST_BANDS {
        bands.sort_by_key(|band| Reverse(band.length()));
        bands.truncate(MOST_BANDS);
    }
}

/// The bands of one row, in the order of time and within the time that is shown.
fn track(name: String, bands: &[Band], row: u32, time: &Time) -> Track {
    let mut track = Track {
        name,
        names: Vec::new(),
        bands: Vec::new(),
        ticks: Vec::new(),
    };
    let range = time.range();
    for band in bands.iter().filter(|band| band.row == row) {
        let (from, to) = (band.from_ns.max(range.start), band.to_ns.min(range.end));
        if from >= to {
            continue;
        }
        let known = track.names.iter().position(|name| *name == band.process);
        let place = known.unwrap_or_else(|| {
            track.names.push(band.process.clone());
            track.names.len() - 1
        });
        track.bands.push((place, from, to));
    }
    track.bands.sort_by_key(|(_, from, _)| *from);
    track
}

fn input(tables: &TraceTables, time: &Time) -> Result<Vec<Track>, Failure> {
    let table = tables.table(Table::Input)?;
    let mut timeline = Timeline::new(time.buckets, Lanes::every(INPUT.len() as u32))?;
    for batch in batches(&table, time.range(), &["time_ns", "kind"]) {
        let batch = batch?;
        let view = InputView::new(&batch)?;
        let kind = |row| {
            let kind = view.kind.get(row)?;
            let place = INPUT.iter().position(|(_, kinds)| kinds.contains(&kind))?;
            u32::try_from(place).ok()
        };
        let kinds: Vec<u32> = (0..view.len())
            .map(|row| kind(row).unwrap_or(views::NULL_ID))
            .collect();
        let once = vec![1; view.len()];
        timeline.add_values(view.time_ns, &kinds, &once, &Rows::of(0..view.len()))?;
    }
    let mut tracks = Vec::new();
    for series in timeline.finish(INPUT.len()) {
        let Lane::Id(kind) = series.lane else {
            continue;
        };
        let buckets = series.buckets.iter().map(views::Summary::count);
        let ticks = buckets.enumerate().filter(|(_, count)| *count > 0);
        tracks.push((
            kind,
            Track {
                name: INPUT[kind as usize].0.to_owned(),
                names: Vec::new(),
                bands: Vec::new(),
                ticks: ticks.collect(),
            },
        ));
    }
    tracks.sort_by_key(|(kind, _)| *kind);
    Ok(tracks.into_iter().map(|(_, track)| track).collect())
}
