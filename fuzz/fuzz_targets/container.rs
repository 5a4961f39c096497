//! Reads any bytes as a log (`.etl`): opens it, walks its buffers, and merges the events of all CPUs.
#![no_main]

use etl::{BufferReader, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let source = vec![(
        "fuzz".to_owned(),
        Box::new(data.to_vec()) as Box<dyn files::Source>,
    )];
    let Ok(trace) = Trace::from_sources(source) else {
        return;
    };
    let mut reader = BufferReader::new(&trace);
    let mut count = 0u64;
    for buffer in trace.buffers() {
        for event in reader.read(buffer) {
            count += 1;
            let _ = (
                event.payload(),
                event.time_ns(),
                event.guid(),
                event.thread_id(),
            );
            let _ = event.extended_items().count() + event.counters().count();
        }
    }
    let mut events = trace.events();
    while events.next().is_some() {
        count -= 1;
    }
    assert_eq!(count, 0, "the merge loses or invents events");
    let _ = trace.streams();
});
