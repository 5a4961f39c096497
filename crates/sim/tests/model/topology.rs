//! Processor groups of simulated machines, compared with Microsoft's documentation ("Processor Groups",
//! <https://learn.microsoft.com/windows/win32/procthread/processor-groups>).
//!
//! The model and the programs that read traces both take the topology from `tune`, so they would share a
//! wrong rule. The literal values in these tests detect such a rule.

use std::io::Cursor;

use etl::Trace;
use events::kernel::ProcessorGroups;
use sim::Scenario;

/// Returns the number of processors in each processor group, as the trace of a simulated machine
/// states it.
fn group_sizes(processors: u16, nodes: u16) -> Vec<u32> {
    let text = format!(
        "title = 't'\nduration = '10ms'\n[machine]\nprocessors = {processors}\nnodes = {nodes}"
    );
    let scenario = Scenario::read("s.toml", &text, &|_| None, &[]).expect("a scenario");
    let out = Cursor::new(Vec::new());
    let (out, _) = sim::simulate(&scenario, None, out, |_| true).expect("it runs");
    let source = Box::new(out.into_inner());
    let trace = Trace::from_sources(vec![("s.etl".to_owned(), source)]).expect("a trace");
    let mut events = trace.events();
    while let Some(event) = events.next() {
        // Hook id of the event `SystemConfig/ProcessorGroup`.
        if event.hook() == Some(0x0B1A) {
            let groups = ProcessorGroups::read(event.payload(), 2, 8).expect("a whole payload");
            return groups.affinities().map(u64::count_ones).collect();
        }
    }
    panic!("the trace has no processor groups");
}

#[test]
fn groups_are_those_of_the_documentation() {
    // "Systems with fewer than 64 logical processors always have a single group, Group 0."
    assert_eq!(group_sizes(62, 1), [62]);
    // "A system with 128 logical processors would have two processor groups with 64 processors in
    // each group, not four groups with 32 logical processors in each group."
    assert_eq!(group_sizes(128, 4), [64, 64]);
    assert_eq!(group_sizes(128, 2), [64, 64]);
}
