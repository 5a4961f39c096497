//! Tests of damaged traces. For any bytes, the building of tables must end, and the tables must be valid.

use etl::Trace;
use tables::{ImageTracker, Options, ProcessTracker, Table, ThreadTracker};
use testdata::Rng;

#[test]
fn damaged_traces_give_whole_tables() {
    let mut random = Rng(5);
    for name in [
        "etl/filtrace__etw.etl",
        "etl/perfview__net.4.5.2.x64.etl",
        "etl/perfview__diaghub__diaghub.kernel.1.etl",
        "etl/sawbuck__process_data_32_v2.etl",
        "etl/sawbuck__image_data_64_v2.etl",
    ] {
        let good = testdata::bytes(name);
        for _ in 0..20 {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(bytes.len() / 500) {
                let at = random.below(bytes.len());
                bytes[at] = [0, 0xFF, 0x80, random.bits() as u8][random.below(4)];
            }
            bytes.truncate(bytes.len() - random.below(bytes.len() / 4));
            let Ok(trace) = Trace::from_sources(vec![(name.into(), Box::new(bytes))]) else {
                continue;
            };
            let mut tables = import_windows::build(&trace, Table::ALL, Options::default()).unwrap();
            let processes = ProcessTracker::new(&tables.processes);
            let threads = ThreadTracker::new(&tables.threads);
            let images = ImageTracker::new(&tables.images);
            for _ in 0..100 {
                let (id, time) = (random.below(10_000) as u32, random.bits() as i64);
                processes.name(id, time);
                threads.process_id(id, time);
                images.lookup(id, random.bits(), time);
            }
            for table in Table::ALL {
                // When the batches are made, Arrow checks the lengths, the offsets and the text of the
                // columns.
                tables.take_batches(*table);
            }
        }
    }
}
