//! Checks that every kernel event in every real trace has a name, and a layout that describes its
//! whole payload.

use std::collections::BTreeMap;

use etl::{BufferReader, Trace};
use events::{decode, kernel};
use files::FileSource;
use serde_json::Value;

/// Number of events, size of the smallest payload and size of the largest payload, by class, opcode and
/// version. Sizes are in bytes.
type Counts = BTreeMap<(String, u64, u64), (u64, usize, usize)>;

fn open(relative: &str) -> Trace {
    let file = std::fs::File::open(testdata::path(relative)).unwrap();
    let source = FileSource::new(file).unwrap();
    Trace::from_sources(vec![(relative.into(), Box::new(source))]).unwrap()
}

fn expected(truth: &Value, list: &str, class: &str) -> Counts {
    let number = |kind: &Value, key: &str| kind[key].as_u64();
    truth[list]
        .as_array()
        .into_iter()
        .flatten()
        .map(|kind| {
            let class = kind[class].as_str().unwrap().to_owned();
            let key = |name| number(kind, name).unwrap();
            let size = |name| number(kind, name).unwrap_or(0) as usize;
            (
                (class, key("opcode"), key("version")),
                (key("count"), size("payload_min"), size("payload_max")),
            )
        })
        .collect()
}

/// Traces of unit tests with wrong headers. A 32-bit program wrote these traces and built the headers itself. The
/// headers state a pointer size of 4 bytes, but the payloads have pointers of 8 bytes.
const WIDE_DESPITE_HEADERS: &[&str] = &[
    "etl/sawbuck__image_data_64_v0.etl",
    "etl/sawbuck__image_data_64_v2.etl",
    "etl/sawbuck__process_data_64_v3.etl",
];

#[test]
fn every_kernel_event_is_described() {
    let (mut decoded, mut stated) = (0, 0);
    for (name, truth) in testdata::traces() {
        let trace = open(&name);
        let (mut by_hook, mut by_guid) = (Counts::new(), Counts::new());
        let mut reader = BufferReader::new(&trace);
        for buffer in trace.buffers() {
            for event in reader.read(buffer) {
                let payload = event.payload();
                let is_wide = WIDE_DESPITE_HEADERS.contains(&&*name) && event.hook().is_none();
                let width = if is_wide { 8 } else { event.pointer_size() };
                let (Some(opcode), Some(version)) = (event.opcode(), event.version()) else {
                    continue;
                };
                let key = (opcode.into(), version.into());
                if let Some(hook) = event.hook() {
                    // `truth.json` counts image loads in the group of the process class.
                    let class = kernel::Class::of_group((hook >> 8) as u8).unwrap().name;
                    let count = by_hook.entry((class.to_owned(), key.0, key.1)).or_insert((
                        0,
                        usize::MAX,
                        0,
                    ));
                    *count = (
                        count.0 + 1,
                        count.1.min(payload.len()),
                        count.2.max(payload.len()),
                    );
                } else if event.descriptor().is_none() {
                    let guid = event.guid().unwrap().to_string();
                    by_guid.entry((guid, key.0, key.1)).or_default().0 += 1;
                }
                let Some(class) = kernel::class_name(&event) else {
                    continue;
                };
                let kind = format!("{class}/{:?} v{version}", kernel::event_name(&event));
                let schema = kernel::schema(&event)
                    .unwrap_or_else(|| panic!("{name}: {kind} has no layout"));
                let fields = decode(&schema.fields, payload, width);
                assert_eq!(
                    (fields.truncated, fields.tail),
                    (None, &[][..]),
                    "{name}: {kind}"
                );
                decoded += 1;
            }
        }
        let of_hooks = expected(&truth, "kernel_events", "cls");
        let of_guids = expected(&truth, "classic_events", "guid");
        assert_eq!(by_hook, of_hooks, "{name}");
        assert_eq!(by_guid, of_guids, "{name}");
        let is_known = |guid: &str| kernel::Class::of_guid(guid.parse().unwrap()).is_some();
        let of_guids = of_guids.iter().filter(|((guid, ..), _)| is_known(guid));
        stated += of_hooks
            .iter()
            .chain(of_guids)
            .map(|(_, (count, ..))| count)
            .sum::<u64>();
    }
    assert_eq!(decoded, stated);
}
