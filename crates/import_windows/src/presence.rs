//! Evidence about the activity of each CPU, from the kernel events of a trace. It consists of two facts: whether the
//! CPU switched threads, and which threads the CPU's samples name.

use std::ops::Range;

use events::ids::hook::{COMPACT_CONTEXT_SWITCH, CONTEXT_SWITCH, SAMPLE};
use events::kernel::Sample;
use tables::import::{FirstAndLast, LATE_NS};

use crate::register::IncomingEvent;

const SECOND_NS: i64 = 1_000_000_000;

/// Evidence about one CPU, or about one of its streams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Presence {
    /// True if the CPU switched threads.
    pub(crate) switches: bool,
    /// Thread that the CPU's samples name.
    sampled: SampledThread,
    /// First and last sample, if there are any.
    samples: Option<FirstAndLast>,
    /// Times of the first and the last kernel event.
    pub(crate) span_ns: Option<(i64, i64)>,
    /// Number of seconds in which the CPU logged samples, DPCs or interrupts. Every recorded CPU logs such
    /// events. Other events of the CPU are not counted. The reason is that a trimmed trace keeps some of
    /// these other events, because the events of other CPUs need them.
    seconds: i64,
    last_second: Option<i64>,
}

/// Thread that the samples of a CPU name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SampledThread {
    #[default]
    Never,
    /// All samples name this thread.
    Always(u32),
    /// The samples name several threads.
    Mixed,
}

impl SampledThread {
    fn and(self, other: SampledThread) -> SampledThread {
        match (self, other) {
            (SampledThread::Never, other) | (other, SampledThread::Never) => other,
            (one, other) if one == other => one,
            _ => SampledThread::Mixed,
        }
    }
}

/// Returns the smallest span that contains both spans.
fn joined<T: Ord + Copy>(one: Option<(T, T)>, other: Option<(T, T)>) -> Option<(T, T)> {
    let spans = [one, other].into_iter().flatten();
    spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

impl Presence {
    /// Adds an event. Header events (group 0) are ignored. In a ring buffer, header events are much older
    /// than all other events.
    #[inline]
    pub(crate) fn add(&mut self, incoming: &IncomingEvent<'_, '_>) {
        let Some(hook) = incoming.hook.filter(|hook| hook >> 8 != 0) else {
            return;
        };
        let time_ns = incoming.event.time_ns();
        let (first, last) = self.span_ns.unwrap_or((time_ns, time_ns));
        self.span_ns = Some((first.min(time_ns), last.max(time_ns)));
        let second = time_ns.div_euclid(SECOND_NS);
        if hook >> 8 == SAMPLE >> 8 && self.last_second.replace(second) != Some(second) {
            self.seconds += 1;
        }
        match hook {
            CONTEXT_SWITCH | COMPACT_CONTEXT_SWITCH => self.switches = true,
            SAMPLE => {
                let event = incoming.event;
                let sample = event.version().and_then(|version| {
                    Sample::read(event.payload(), version, event.pointer_size())
                });
                let sampled =
                    sample.map_or(SampledThread::Mixed, |s| SampledThread::Always(s.thread_id));
                self.sampled = self.sampled.and(sampled);
                if let Some(sample) = sample {
                    let sample = (time_ns, sample.thread_id);
                    self.samples = joined(self.samples, Some((sample, sample)));
                }
            }
            _ => {}
        }
    }

    /// Adds the evidence of another stream of the same CPU.
    pub(crate) fn merge(&mut self, other: &Presence) {
        self.switches |= other.switches;
        self.sampled = self.sampled.and(other.sampled);
        self.seconds = self.seconds.max(other.seconds);
        self.last_second = self.last_second.max(other.last_second);
        self.samples = joined(self.samples, other.samples);
        self.span_ns = joined(self.span_ns, other.span_ns);
    }

    pub(crate) fn samples(&self) -> Option<FirstAndLast> {
        self.samples
    }

    /// Returns the thread that ran all the time on a CPU that never switched threads; 0 is the idle thread. Returns
    /// `None` if the CPU switched threads, or if the thread is unknown. The thread is unknown in three cases: the CPU
    /// logged nothing in most seconds of `span`, the CPU logged nothing at the end of `span`, or the CPU's samples name
    /// several threads.
    ///
    /// If there are no samples, the thread is assumed to be the idle thread, because any other thread would
    /// have lost the CPU at some time.
    pub(crate) fn unswitched_thread(&self, span: &Range<i64>) -> Option<u32> {
        let second = |ns: i64| ns.div_euclid(SECOND_NS);
        let seconds = second(span.end).saturating_sub(second(span.start)) + 1;
        let last = second(span.end.saturating_sub(LATE_NS));
        let ends_late = self.last_second.is_some_and(|second| second >= last);
        let is_present = ends_late && self.seconds.saturating_mul(2) >= seconds;
        match self.sampled {
            _ if self.switches || !is_present => None,
            SampledThread::Never => Some(0),
            SampledThread::Always(thread_id) => Some(thread_id),
            SampledThread::Mixed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(sampled: SampledThread, seconds: i64) -> Presence {
        Presence {
            sampled,
            seconds,
            last_second: Some(seconds - 1),
            span_ns: Some((0, seconds * SECOND_NS)),
            ..Presence::default()
        }
    }

    #[test]
    fn a_cpu_that_never_switches_ran_the_thread_of_its_samples() {
        let span = 0..9 * SECOND_NS;
        assert_eq!(
            seen(SampledThread::Always(0), 10).unswitched_thread(&span),
            Some(0)
        );
        assert_eq!(
            seen(SampledThread::Always(7), 10).unswitched_thread(&span),
            Some(7)
        );
        assert_eq!(
            seen(SampledThread::Never, 10).unswitched_thread(&span),
            Some(0)
        );
        assert_eq!(
            seen(SampledThread::Mixed, 10).unswitched_thread(&span),
            None
        );
    }

    #[test]
    fn a_cpu_of_a_few_events_or_with_switches_is_unknown() {
        let span = 0..9 * SECOND_NS;
        assert_eq!(
            seen(SampledThread::Always(0), 2).unswitched_thread(&span),
            None
        );
        let switching = Presence {
            switches: true,
            ..seen(SampledThread::Always(0), 10)
        };
        assert_eq!(switching.unswitched_thread(&span), None);
    }

    #[test]
    fn streams_of_one_cpu_are_judged_together() {
        let mut one = seen(SampledThread::Always(0), 10);
        one.merge(&seen(SampledThread::Always(3), 1));
        assert_eq!(one.unswitched_thread(&(0..SECOND_NS)), None);
    }
}
