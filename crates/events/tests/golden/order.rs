//! The order of events over several files.

use crate::kinds;
use crate::trace::Decodable;

/// A file and a CPU: what a reader merges.
type Stream = (u16, u16);

/// What comparing two orders amounted to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) events: usize,
    /// Times that events of several streams share.
    pub(crate) ties: usize,
    /// Choices among tied streams that the rule leaves open.
    pub(crate) open: usize,
}

/// Compares the order of a trace's events with `names`, those that TraceEvent shows, as Windows
/// merged them.
///
/// Time decides. Among events of equal time a stream's stay together, and the stream that Windows
/// last read from goes first; which other one follows depends on its queue. Ours are sorted by CPU
/// and file there, so events of one time are rearranged by that rule before they are compared.
pub(crate) fn compare(trace: &Decodable, names: &[&str]) -> Order {
    let mut shown: Vec<(i64, Stream, String)> = Vec::new();
    trace.for_each(|event, decoded| {
        let (provider, name) = kinds::name(event, decoded);
        if kinds::reason_left_out(&format!("{provider}/{name}"), decoded).is_none() {
            let stream = (event.place().segment, event.cpu());
            shown.push((event.raw_time(), stream, name));
        }
    });
    assert!(shown.is_sorted_by_key(|(time, ..)| *time));
    assert_eq!(shown.len(), names.len());

    let (mut ties, mut open) = (0, 0);
    let mut rest = names;
    let mut last = None;
    for same_time in shown.chunk_by(|a, b| a.0 == b.0) {
        let mut streams: Vec<(Stream, Vec<&str>)> = Vec::new();
        for (_, stream, name) in same_time {
            match streams.iter_mut().find(|(known, _)| known == stream) {
                Some((_, of_stream)) => of_stream.push(name),
                None => streams.push((*stream, vec![name])),
            }
        }
        ties += usize::from(streams.len() > 1);
        while !streams.is_empty() {
            let is_last = |(stream, _): &(Stream, _)| Some(*stream) == last;
            let next = match streams.iter().position(is_last) {
                Some(of_last) => Some(of_last),
                None => {
                    open += usize::from(streams.len() > 1);
                    streams
                        .iter()
                        .position(|(_, of_stream)| rest.starts_with(of_stream))
                }
            };
            let at = names.len() - rest.len();
            let Some(next) = next else {
                panic!("at {at}: {streams:?} do not start {:?}", &rest[..10]);
            };
            let (stream, of_stream) = streams.swap_remove(next);
            assert_eq!(rest[..of_stream.len()], of_stream, "at {at}");
            rest = &rest[of_stream.len()..];
            last = Some(stream);
        }
    }
    Order {
        events: shown.len(),
        ties,
        open,
    }
}
