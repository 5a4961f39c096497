//! Learning what events mean from the trace itself, and from files the user gives.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use etl::{BufferReader, Event, Trace};
use events::{Decoder, Identity};

use crate::cli::Failure;
use crate::key::Key;
use crate::survey::{Count, Position};

/// The largest manifest or TMF file that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Descriptions of events that do not come with the trace.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct MetadataFiles {
    /// Instrumentation manifest (.man) of a provider, for events the trace does not describe, or a
    /// directory of them (repeatable)
    #[arg(long, value_name = "FILE|DIR", help_heading = "Meanings")]
    pub(crate) manifest: Vec<PathBuf>,
    /// Message descriptions of WPP events: a .tmf file, or a directory of them (repeatable)
    #[arg(long, value_name = "FILE|DIR", help_heading = "Meanings")]
    pub(crate) tmf: Vec<PathBuf>,
}

impl MetadataFiles {
    /// A decoder that knows what these files say.
    pub(crate) fn decoder(&self) -> Result<Decoder, Failure> {
        let mut decoder = Decoder::new();
        for file in files_of(&self.manifest, "man")? {
            let text = read_text(&file)?;
            decoder
                .add_manifest(&text)
                .map_err(|e| Failure::input(&file, e))?;
        }
        for file in files_of(&self.tmf, "tmf")? {
            let text = read_text(&file)?;
            decoder
                .add_tmf(&text)
                .map_err(|e| Failure::input(&file, e))?;
        }
        Ok(decoder)
    }
}

/// The files, and those of the directories with that extension, in the order of their names.
fn files_of(paths: &[PathBuf], extension: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside = Vec::new();
        for entry in fs::read_dir(path).map_err(|e| Failure::input(path, e))? {
            let file = entry.map_err(|e| Failure::input(path, e))?.path();
            if file
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case(extension))
            {
                inside.push(file);
            }
        }
        if inside.is_empty() {
            return Err(Failure::input(path, format!("no .{extension} file in it")));
        }
        inside.sort();
        files.append(&mut inside);
    }
    Ok(files)
}

/// Text in UTF-8 or, with a byte-order mark, UTF-16: Windows tools write both.
fn read_text(path: &Path) -> Result<String, Failure> {
    let found = fs::metadata(path).map_err(|e| Failure::input(path, e))?;
    if !found.is_file() || found.len() > MAX_FILE {
        return Err(Failure::input(path, "not a file of at most 64 MiB"));
    }
    let bytes = fs::read(path).map_err(|e| Failure::input(path, e))?;
    Ok(match bytes.as_slice() {
        [0xFF, 0xFE, rest @ ..] => {
            let (units, _) = rest.as_chunks::<2>();
            let units = units.iter().map(|u| u16::from_le_bytes(*u));
            char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// Lets `decoder` learn from the metadata in the given buffers, the earliest first.
pub(crate) fn learn(decoder: &mut Decoder, trace: &Trace, mut buffers: Vec<u32>) {
    let time = |i: &u32| {
        trace
            .buffers()
            .get(*i as usize)
            .map(|b| (b.segment, b.first_time, *i))
    };
    buffers.sort_by_key(time);
    buffers.dedup();
    let mut reader = BufferReader::new(trace);
    for buffer in buffers
        .iter()
        .filter_map(|i| trace.buffers().get(*i as usize))
    {
        for event in reader.read(buffer).filter(events::is_metadata) {
            decoder.learn(&event);
        }
    }
    decoder.finish_learning();
}

/// Looks at the example event of each kind. Each buffer is read once.
pub(crate) fn visit_examples<'k>(
    trace: &Trace,
    kinds: impl Iterator<Item = (&'k Key, &'k Count)>,
    mut visit: impl FnMut(Key, &Event<'_>),
) {
    let mut examples: Vec<(Position, Key)> = kinds.map(|(k, c)| (c.example, *k)).collect();
    examples.sort_unstable();
    let mut reader = BufferReader::new(trace);
    for of_buffer in examples.chunk_by(|a, b| a.0.buffer == b.0.buffer) {
        let Some(buffer) = of_buffer
            .first()
            .and_then(|(at, _)| trace.buffers().get(at.buffer as usize))
        else {
            continue;
        };
        let mut wanted = of_buffer.iter().peekable();
        for (event, index) in reader.read(buffer).zip(0u32..) {
            while let Some((_, key)) = wanted.next_if(|(at, _)| at.event == index) {
                visit(*key, &event);
            }
        }
    }
}

/// Who logged each kind of event and what it is called.
pub(crate) fn identify<'k>(
    decoder: &Decoder,
    trace: &Trace,
    kinds: impl Iterator<Item = (&'k Key, &'k Count)>,
) -> HashMap<Key, Identity> {
    let mut names = HashMap::new();
    visit_examples(trace, kinds, |key, event| {
        names.insert(key, decoder.identify(event));
    });
    names
}
