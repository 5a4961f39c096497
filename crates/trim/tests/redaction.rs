//! Tests that a redacted trace reveals nothing about people and machines.

use crate::logs;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;

use etl::mode;
use events::schema::Source;
use events::{Decoder, Value};
use raw_events::Filter;

use logs::{Redact, cut, events, faults};

/// Returns all texts in a log's header and in its kernel events. Also returns the bytes in which developers described
/// their events, because these bytes stay readable.
fn texts(path: &Path) -> (Vec<String>, Vec<u8>) {
    let trace = etl::open(&[path.to_owned()]).unwrap();
    let mut decoder = Decoder::new();
    let mut walk = trace.events();
    while let Some(event) = walk.next() {
        decoder.learn(&event);
    }
    decoder.finish_learning();
    let (mut texts, mut developers) = (Vec::new(), Vec::new());
    let mut walk = trace.events();
    while let Some(event) = walk.next() {
        if events::is_metadata(&event) {
            developers.extend_from_slice(event.record());
        }
        for item in event.extended_items() {
            developers.extend_from_slice(item.data);
        }
        let decoded = decoder.decode(&event);
        if decoded.source == Some(Source::Kernel) {
            for (_, value) in &decoded.fields.values {
                texts_in(value, &mut texts);
            }
        }
    }
    let header = trace.header().unwrap();
    texts.extend([header.session.clone(), header.log_file.clone()]);
    (texts, developers)
}

fn texts_in(value: &Value<'_>, texts: &mut Vec<String>) {
    match value {
        Value::Text(text) => texts.push(text.to_string()),
        Value::Array(values) => values.iter().for_each(|value| texts_in(value, texts)),
        Value::Struct(fields) => fields.iter().for_each(|(_, value)| texts_in(value, texts)),
        _ => {}
    }
}

/// Returns the words of a text, in lower case, that could identify a person or a machine. Leaves out words that stay
/// readable according to the documentation. Also leaves out words of fewer than 6 bytes, because they could occur in
/// a redacted trace by chance.
fn telling_words(text: &str) -> Vec<String> {
    static STAY: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let page = include_str!("../../../docs/trim.md");
        let (_, lists) = page.split_once("### Words that stay").unwrap();
        lists.split('`').collect()
    });
    let words = text.split(|c: char| !(c.is_alphanumeric() || "._-$~@".contains(c)));
    let words = words.map(|word| {
        let mut word = word.to_lowercase();
        // A word can have several extensions, such as `csrss.exe.mui`.
        while let Some((stem, extension)) = word.rsplit_once('.')
            && STAY.contains(extension)
        {
            word.truncate(stem.len());
        }
        word
    });
    // The name of the time zone stays readable too.
    let stays = |word: &str| word == "@tzres" || word.starts_with("harddisk");
    let in_one_that_stays = |word: &str| STAY.iter().any(|other| other.contains(word));
    words
        .filter(|word| word.len() >= 6 && !stays(word) && !in_one_that_stays(word))
        .collect()
}

/// Returns the words that occur in the bytes, in upper or lower case, as UTF-8 or as UTF-16 at even
/// or odd offsets.
fn found<'w>(words: &'w HashSet<String>, bytes: &[u8]) -> Vec<&'w str> {
    let mut by_start: HashMap<&[u8], Vec<&str>> = HashMap::new();
    for word in words {
        by_start
            .entry(&word.as_bytes()[..6])
            .or_default()
            .push(word);
    }
    let lower = bytes.to_ascii_lowercase();
    let half = |skip: usize| -> Vec<u8> { lower.iter().skip(skip).step_by(2).copied().collect() };
    let mut found = HashSet::new();
    for text in [lower.clone(), half(0), half(1)] {
        for (at, start) in text.windows(6).enumerate() {
            for word in by_start.get(start).into_iter().flatten() {
                if text[at..].starts_with(word.as_bytes()) {
                    found.insert(*word);
                }
            }
        }
    }
    found.into_iter().collect()
}

/// Returns the contents of a log. For an uncompressed log, these are the bytes of the file. For a compressed log,
/// these are the decompressed records and the names in the header.
fn content(path: &Path) -> Vec<u8> {
    let trace = etl::open(&[path.to_owned()]).unwrap();
    let header = trace.header().unwrap();
    if header.log_file_mode & mode::COMPRESSED == 0 {
        return std::fs::read(path).unwrap();
    }
    let records = events(&[path])
        .into_iter()
        .flat_map(|(_, _, record)| record);
    let names = [header.session.as_bytes(), header.log_file.as_bytes()].concat();
    records.chain(names).collect()
}

#[test]
fn a_redacted_trace_has_none_of_the_names() {
    let folder = tempfile::tempdir().unwrap();
    // The key is fixed. With random keys, one of a few hundred test runs would fail, because a pseudonym is equal to a
    // searched word of six letters by chance.
    for (name, least) in [
        ("filtrace__etw.etl", 300),
        ("perfview__net.4.5.2.x64.etl", 300),
        ("perfview__net.4.5.x86-win7.etl", 300),
        ("perfview__diaghub__diaghub.kernel.1.etl", 100),
        ("s4__WindowsUpdate.20251008.etl", 1),
    ] {
        let original = testdata::path("etl").join(name);
        let (texts, developers) = texts(&original);
        let words = texts.iter().flat_map(|text| telling_words(text));
        let mut words: HashSet<String> = words.collect();
        for word in found(&words.clone(), &developers) {
            words.remove(word);
        }
        assert!(words.len() >= least, "{name}: {} words", words.len());
        let out = cut(
            &[original],
            &folder,
            &Filter::default(),
            Redact::Key("a key"),
        );
        let left = found(&words, &content(&out));
        assert_eq!(left, Vec::<&str>::new(), "{name}");
        assert_eq!(faults(&out), 0, "{name}");
    }
}

#[test]
fn a_secret_makes_the_same_pseudonyms_again() {
    let folder = tempfile::tempdir().unwrap();
    let original = [testdata::path("etl/tx__Process.etl")];
    let written =
        |redact| std::fs::read(cut(&original, &folder, &Filter::default(), redact)).unwrap();
    let key = Redact::Key("s3cret");
    assert!(written(key) == written(key));
    assert!(written(Redact::Random) != written(Redact::Random));
}
