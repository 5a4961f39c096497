//! User activity: the process in focus, input, and frozen processes.

use std::cmp::Reverse;

use serde::Serialize;
use session::TraceTables;
use tables::{FocusView, Identities, InputView, ProcessFreezesView, Table};
use views::{Lane, Lanes, Rows, Timeline};

use super::{Time, process};
use crate::Error;

/// Maximum number of time ranges from one table. If there are more, only the longest time ranges are kept.
const MOST_BANDS: usize = 1000;

/// Maximum number of processes whose freezes are shown. If there are more, only the processes that were
/// frozen longest are kept.
const MOST_FROZEN: usize = 12;

/// Maximum number of terminal sessions whose focus is shown.
const MOST_SESSIONS: usize = 4;

/// Kinds of input that have their own row in the chart, with their values of the column `kind`.
const INPUT: [(&str, &[&str]); 4] = [
    ("keys", &["key_down"]),
    ("mouse buttons", &["mouse_down", "mouse_up"]),
    ("mouse moves", &["mouse_move", "mouse_wheel"]),
    ("devices read by Windows", &["device_read_start"]),
];

/// Rows of the charts of focus, freezes and input.
#[derive(Debug, Default, Serialize)]
pub(in super::super) struct Tracks {
    /// Rows that show the process in focus, one for each terminal session.
    pub(in super::super) focus: Vec<Track>,
    /// Rows that show freezes, one for each process.
    pub(in super::super) freezes: Vec<Track>,
    /// Rows that show input, one for each kind of input.
    pub(in super::super) input: Vec<Track>,
}

/// Row of a chart.
#[derive(Debug, Serialize)]
pub(in super::super) struct Track {
    /// Label of the row.
    pub(in super::super) name: String,
    /// Names of the processes in `bands`.
    names: Vec<String>,
    /// Bands of the row. Each has the index of its process in `names`, and its start and end in nanoseconds.
    bands: Vec<(usize, i64, i64)>,
    /// For each time bucket with events: index of the bucket, and number of events in it.
    ticks: Vec<(usize, u64)>,
}

pub(super) fn read(tables: &TraceTables, names: &Identities, time: &Time) -> Result<Tracks, Error> {
    Ok(Tracks {
        focus: focus(tables, names, time)?,
        freezes: freezes(tables, names, time)?,
        input: input(tables, time)?,
    })
}

/// Time range of a process, drawn in one row.
struct Band {
    /// Id of the row.
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

fn focus(tables: &TraceTables, names: &Identities, time: &Time) -> Result<Vec<Track>, Error> {
    let table = tables.table(Table::Focus)?;
    let columns = [
        "start_ns",
        "end_ns",
        "session_id",
        "process_id",
        "process_row",
    ];
    let mut bands = Vec::new();
    for batch in tables.batches(&table, i64::MIN..i64::MAX, &columns) {
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

fn freezes(tables: &TraceTables, names: &Identities, time: &Time) -> Result<Vec<Track>, Error> {
    let table = tables.table(Table::ProcessFreezes)?;
    let columns = ["start_ns", "end_ns", "process_id", "process_row"];
    let mut bands: Vec<Band> = Vec::new();
    for batch in tables.batches(&table, i64::MIN..i64::MAX, &columns) {
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

/// Returns the bands of one row within the visible range, ordered by time.
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

fn input(tables: &TraceTables, time: &Time) -> Result<Vec<Track>, Error> {
    let table = tables.table(Table::Input)?;
    let mut timeline = Timeline::new(time.buckets, Lanes::every(INPUT.len() as u32))?;
    for batch in tables.batches(&table, time.range(), &["time_ns", "kind"]) {
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
    for series in timeline.finish() {
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
