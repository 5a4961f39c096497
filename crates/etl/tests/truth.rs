//! Compares the headers, the events and the times of every real trace with `truth.json`. Independent programs
//! made `truth.json`.

use std::collections::BTreeMap;

use etl::{BufferReader, HeaderKind, LogFileHeader, Trace};
use files::FileSource;
use serde_json::Value;

fn open(relative: &str) -> Trace {
    let file = std::fs::File::open(testdata::path(relative)).unwrap();
    Trace::from_sources(vec![(
        relative.into(),
        Box::new(FileSource::new(file).unwrap()),
    )])
    .unwrap()
}

/// Formats a FILETIME like the ISO 8601 times in `truth.json`, with microseconds.
fn iso(filetime: i64) -> String {
    let micros = filetime / 10 - 11_644_473_600_000_000;
    let (days, micros) = (
        micros.div_euclid(86_400_000_000),
        micros.rem_euclid(86_400_000_000),
    );
    // The date is computed from days since 1970 with Howard Hinnant's algorithm.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (
        doy - (153 * mp + 2) / 5 + 1,
        if mp < 10 { mp + 3 } else { mp - 9 },
    );
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}");
    if micros != 0 {
        text += &format!(".{micros:06}");
    }
    text + "Z"
}

fn check_header(name: &str, h: &LogFileHeader, truth: &Value) {
    let is = |key: &str, value: Value| assert_eq!(value, truth[key], "{name}: {key}");
    is("buffer_size", h.buffer_size.into());
    is(
        "os_version",
        format!("{}.{}", h.os_version.0, h.os_version.1).into(),
    );
    is(
        "sub",
        format!("{}.{}", h.log_version.0, h.log_version.1).into(),
    );
    is("os_build", h.os_build.into());
    is("processors", h.processors.into());
    is("pointer_size", h.pointer_size.into());
    is("perf_freq", h.perf_frequency.into());
    is("clock", h.clock_type.into());
    // The times in `truth.json` were computed with floating-point numbers, so they are exact only
    // to a microsecond.
    let is_time = |key: &str, filetime: i64| {
        let both = [iso(filetime - 10), iso(filetime), iso(filetime + 10)];
        assert!(
            both.iter().any(|t| truth[key] == **t),
            "{name}: {key} {both:?}"
        );
    };
    is_time("start", h.start);
    is_time("boot", h.boot);
    if let Some(end) = h.end {
        is_time("end", end);
    }
    is("timer_res", h.timer_resolution.into());
    is("max_file", h.maximum_file_size.into());
    is("log_file_mode", format!("0x{:x}", h.log_file_mode).into());
    is("buffers_written", h.buffers_written.into());
    is("start_buffers", h.start_buffers.into());
    is("events_lost", h.events_lost.into());
    is("buffers_lost", h.buffers_lost.into());
    is("cpu_mhz", h.cpu_mhz.into());
    is("session", h.session.clone().into());
    is("logfile", h.log_file.clone().into());
    is("tz", h.time_zone.clone().into());
    is("tz_bias", h.time_zone_bias.into());
    is("first_event_time", h.raw_start.into());
}

#[test]
fn headers_counts_and_spans_equal_the_ground_truth() {
    for (name, truth) in testdata::traces() {
        let trace = open(&name);
        assert_eq!(truth["file_size"], trace.size_bytes(), "{name}");
        assert_eq!(truth["buffers"], trace.buffers().len(), "{name}: buffers");
        assert_eq!(trace.segments().len(), 1, "{name}");
        check_header(&name, trace.header().unwrap(), &truth["header"]);

        let mut kinds = BTreeMap::<&str, u64>::new();
        let mut items = 0u64;
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        let mut reader = BufferReader::new(&trace);
        for buffer in trace.buffers() {
            for event in reader.read(buffer) {
                *kinds.entry(event.kind().name()).or_default() += 1;
                items += event.extended_items().count() as u64;
                // The programs that made `truth.json` do not read the times of WPP messages.
                if event.kind() != HeaderKind::Message {
                    (first, last) = (first.min(event.raw_time()), last.max(event.raw_time()));
                }
            }
        }
        assert_eq!(
            reader.damage().counts(),
            &BTreeMap::new(),
            "{name}: {:?}",
            reader.damage()
        );
        assert_eq!(truth["total_events"], kinds.values().sum::<u64>(), "{name}");
        for (kind, count) in truth["header_types"].as_object().unwrap() {
            assert_eq!(
                kinds.get(kind.as_str()).copied(),
                count.as_u64(),
                "{name}: {kind}"
            );
        }
        assert_eq!(
            kinds.len(),
            truth["header_types"].as_object().unwrap().len(),
            "{name}"
        );
        let stated = truth["ext_items"].as_object().unwrap();
        assert_eq!(
            stated.values().filter_map(Value::as_u64).sum::<u64>(),
            items,
            "{name}: items"
        );
        let ticks = last - first;
        let span = ticks as f64 / trace.clock().frequency() as f64;
        let stated = truth["event_span_s"].as_f64().unwrap();
        assert!(
            (span - stated).abs() < 1e-6,
            "{name}: span {span} s, truth {stated} s"
        );
    }
}

#[test]
fn the_merge_gives_every_event_once_and_in_order() {
    for (name, truth) in testdata::traces() {
        let trace = open(&name);
        let mut events = trace.events();
        let (mut count, mut last) = (0u64, (i64::MIN, 0));
        while let Some(event) = events.next() {
            let key = (event.raw_time(), event.cpu());
            assert!(
                key >= last,
                "{name}: event {count} at {key:?} follows {last:?}"
            );
            last = key;
            count += 1;
        }
        assert_eq!(
            truth["total_events"],
            count,
            "{name} {:#?}",
            trace.buffers()
        );
        assert!(
            events.damage().counts().is_empty(),
            "{name}: {:?}",
            events.damage()
        );
        let streams = trace.streams();
        let by_stream: usize = streams.iter().map(|s| s.buffers().len()).sum();
        assert_eq!(by_stream, trace.buffers().len(), "{name}");
        for stream in streams {
            let (mut reader, mut last) = (stream.reader(), i64::MIN);
            for buffer in stream.buffers() {
                for event in reader.read(buffer) {
                    assert!(event.raw_time() >= last, "{name}: CPU {}", stream.cpu());
                    last = event.raw_time();
                }
            }
        }
    }
}
