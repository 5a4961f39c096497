//! Checks the report of stacks. The expected results come from a simple walk over the bytes of the events. This walk
//! does not use the tables or symbol files of laglab.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use simulated::{Simulated, list, number, text};
use xperf::{PlaceOptions, Stacked};

use super::reported::{by_function, open, rows_and_warnings};

// These are hook ids of kernel events. The high byte of an id is the group, and the low byte is the opcode.

const STACK: u16 = 0x1820;
const IMAGE_LOAD: u16 = 0x030A;
const IMAGE_RUNDOWN: u16 = 0x1403;
const CONTEXT_SWITCH: u16 = 0x0524;
const READY_THREAD: u16 = 0x0532;
const SAMPLE: u16 = 0x0F2E;

/// Image that is mapped into a process. The process id of kernel images is 0.
struct Image {
    process_id: u32,
    base: u64,
    size: u64,
    file: String,
}

/// Stack of an event: return addresses, innermost first.
struct Stack {
    process_id: u32,
    addresses: Vec<u64>,
}

/// Images, events and stacks that were read from a trace.
#[derive(Default)]
struct Walk {
    images: Vec<Image>,
    /// Number of events by hook id.
    events: HashMap<u16, u64>,
    stacks: HashMap<u16, Vec<Stack>>,
}

fn u32_at(payload: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(payload[at..at + 4].try_into().unwrap())
}

fn u64_at(payload: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(payload[at..at + 8].try_into().unwrap())
}

/// Returns the file name of an image. Its path is at the end of the event.
fn file_name(payload: &[u8]) -> String {
    let units = payload[56..].chunks_exact(2);
    let units = units.map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let path: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    let path = String::from_utf16(&path).unwrap();
    path.rsplit('\\').next().unwrap().to_owned()
}

impl Walk {
    fn new(trace: &str) -> Walk {
        let trace = etl::open(&[trace.into()]).unwrap();
        let mut events = trace.events();
        let mut walk = Walk::default();
        // Raw time and hook id of the last event of each CPU. The next event of the CPU may be the stack of this
        // event.
        let mut last: HashMap<u16, (u64, u16)> = HashMap::new();
        // CPUs that already had a context switch.
        let mut switched: BTreeSet<u16> = BTreeSet::new();
        while let Some(event) = events.next() {
            let payload = event.payload();
            match event.hook() {
                Some(IMAGE_LOAD | IMAGE_RUNDOWN) => walk.images.push(Image {
                    process_id: u32_at(payload, 16),
                    base: u64_at(payload, 0),
                    size: u64_at(payload, 8),
                    file: file_name(payload),
                }),
                Some(STACK) => {
                    let Some((time, hook)) = last.remove(&event.cpu()) else {
                        continue;
                    };
                    assert_eq!(u64_at(payload, 0), time, "the stack of another event");
                    let addresses = payload[16..].chunks_exact(8);
                    walk.stacks.entry(hook).or_default().push(Stack {
                        process_id: u32_at(payload, 8),
                        addresses: addresses.map(|address| u64_at(address, 0)).collect(),
                    });
                }
                Some(hook) => {
                    let time = event.raw_time() as u64;
                    let is_switch = hook == CONTEXT_SWITCH;
                    if is_switch {
                        switched.insert(event.cpu());
                    }
                    // Idle threads do not wait, so the report leaves out their stacks.
                    if is_switch && u32_at(payload, 0) == 0 {
                        last.remove(&event.cpu());
                        continue;
                    }
                    *walk.events.entry(hook).or_default() += 1;
                    last.insert(event.cpu(), (time, hook));
                    // Before the first switch of a CPU, the running thread is unknown. So the thread that readies
                    // others is unknown too.
                    if hook == READY_THREAD && !switched.contains(&event.cpu()) {
                        last.remove(&event.cpu());
                    }
                }
                None => {}
            }
        }
        walk
    }

    /// Returns the function at an address in a process, with the name that the truth file has.
    fn function(&self, truth: &Value, process_id: u32, address: u64) -> String {
        let is_in = |image: &&Image| {
            (image.process_id == process_id || image.process_id == 0)
                && (image.base..image.base + image.size).contains(&address)
        };
        let image = self.images.iter().find(is_in).expect("a module");
        let module = list(truth, "modules").iter().find(|module| {
            let path = text(&module["path"]);
            path.rsplit('\\').next() == Some(&image.file)
        });
        let rva = (address - image.base) as i64;
        let mut functions = list(module.expect("a module of the truth"), "functions").iter();
        let function = functions.find(|function| {
            let begin = number(function, "rva");
            (begin..begin + number(function, "size")).contains(&rva)
        });
        let name = text(&function.expect("a function")["name"]);
        format!("{}!{name}", image.file)
    }
}

/// Two kinds of counts. `places` has two numbers for each function or module: the number of stacks that contain it, and
/// the number of stacks whose innermost frame is in it. `calls` has the number of stacks for each pair of caller and
/// callee.
#[derive(Debug, Default, PartialEq)]
struct Hits {
    places: BTreeMap<String, (i64, i64)>,
    calls: BTreeMap<(String, String), i64>,
}

impl Hits {
    /// Counts functions or modules on stacks. Each stack begins with its innermost frame.
    fn count(stacks: &[Vec<&str>]) -> Hits {
        let mut hits = Hits::default();
        for stack in stacks {
            let place = hits.places.entry(stack[0].to_owned());
            place.or_default().1 += 1;
            for place in BTreeSet::from_iter(stack) {
                hits.places.entry((*place).to_owned()).or_default().0 += 1;
            }
            let calls = stack.windows(2).map(|pair| (pair[1], pair[0]));
            for (caller, callee) in BTreeSet::from_iter(calls) {
                let call = (caller.to_owned(), callee.to_owned());
                *hits.calls.entry(call).or_default() += 1;
            }
        }
        hits
    }

    /// Parses the rows of the report. The rows contain each call twice: once for the caller and once for the
    /// callee.
    fn reported(rows: &[Value]) -> Hits {
        let mut hits = Hits::default();
        let mut calls = [BTreeMap::new(), BTreeMap::new()];
        for row in rows {
            let (place, other) = (text(&row["module"]), text(&row["other"]));
            let inclusive = number(row, "inclusive");
            match row["relation"].as_str() {
                Some("itself") => {
                    let sum = (inclusive, number(row, "exclusive"));
                    assert_eq!(hits.places.insert(place, sum), None);
                }
                Some("caller") => assert_eq!(calls[0].insert((other, place), inclusive), None),
                Some("callee") => assert_eq!(calls[1].insert((place, other), inclusive), None),
                _ => panic!("{row}"),
            }
        }
        let [by_callee, by_caller] = calls;
        assert_eq!(by_callee, by_caller);
        hits.calls = by_callee;
        hits
    }
}

#[test]
fn stacks_hold_the_functions_of_the_scenario() {
    for scenario in ["healthy", "smb-signing-on"] {
        let simulated = Simulated::new(scenario, &["duration=4s"]);
        let walk = Walk::new(&simulated.trace);
        let recording = open(&simulated);
        let mut known: HashMap<(u32, u64), String> = HashMap::new();
        for stack in walk.stacks.values().flatten() {
            for address in &stack.addresses {
                let process = stack.process_id;
                let name = || walk.function(&simulated.truth, process, *address);
                known.entry((process, *address)).or_insert_with(name);
            }
        }
        for (event, hook) in [
            (Stacked::Profile, SAMPLE),
            (Stacked::Cswitch, CONTEXT_SWITCH),
            (Stacked::Readythread, READY_THREAD),
        ] {
            let stacks = &walk.stacks[&hook];
            let functions: Vec<Vec<&str>> = stacks
                .iter()
                .map(|stack| {
                    let frames = stack.addresses.iter();
                    let frames = frames.map(|address| &*known[&(stack.process_id, *address)]);
                    frames.collect()
                })
                .collect();
            // Adjacent frames in the same module count as one frame.
            let modules: Vec<Vec<&str>> = functions
                .iter()
                .map(|stack| {
                    let modules = stack.iter().map(|name| name.split('!').next().unwrap());
                    let mut modules: Vec<&str> = modules.collect();
                    modules.dedup();
                    modules
                })
                .collect();
            let of_functions = by_function(&simulated);
            for (places, stacks) in [
                (of_functions, functions),
                (PlaceOptions::default(), modules),
            ] {
                let by = places.by;
                let report = xperf::Stack {
                    event,
                    butterfly: Some(0.0),
                    places,
                };
                let (rows, warnings) = rows_and_warnings(&report, &recording);
                let reported = Hits::reported(&rows);
                assert!(stacks.len() > 100 && !reported.calls.is_empty());
                let case = format!("{scenario}, {event:?}, {by:?}");
                assert_eq!(reported, Hits::count(&stacks), "{case}");

                let (all, with) = (walk.events[&hook], stacks.len() as u64);
                let [without, of] = [all - with, all].map(wording::grouped);
                let note = format!("{without} of {of} events have no stack");
                let notes = if all == with { vec![] } else { vec![note] };
                assert_eq!(warnings, notes, "{case}");
            }
        }
    }
}
