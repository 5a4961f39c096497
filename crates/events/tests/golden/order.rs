//! Compares the order of events in a trace of several files with another program's order.

use crate::golden::kinds;
use crate::golden::trace::Decodable;

/// Events of one file and one CPU. The values are the index of the file and the number of the CPU.
type Stream = (u16, u16);

/// Result of comparing two orders.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) events: usize,
    /// Number of moments at which several streams have events.
    pub(crate) ties: usize,
    /// Number of choices between streams with events at the same moment that the rule of Windows (see [`compare`])
    /// does not decide.
    pub(crate) open: usize,
}

/// Compares the order of a trace's events with `names`, the event names in TraceEvent's output. TraceEvent
/// shows the events in the order in which Windows merged the files.
///
/// The rule of Windows is: events are sorted by time. If events have the same time, the events of one stream stay
/// together, and the stream from which Windows read last comes first. The rule does not decide the order of the
/// other streams, because this order depends on Windows' internal queue.
///
/// Our trace sorts events of the same time by CPU and file. So this function sorts our events by the rule of
/// Windows before it compares them. If the rule does not decide, the function takes a stream that matches `names`.
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
