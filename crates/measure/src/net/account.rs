//! Fates of packets: returned, lost, duplicated, reordered.

/// Round trip of a packet. Times are in nanoseconds since the start of the run, measured with the source's
/// clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Intended time of sending.
    pub intended_ns: i64,
    /// Time of sending; `None` if the system refused the packet.
    pub sent_ns: Option<i64>,
    /// Time of return; `None` if the packet did not return.
    pub back_ns: Option<i64>,
}

impl Trip {
    /// Returns the round-trip time; `None` if the packet was not sent or did not return.
    pub fn round_trip_ns(&self) -> Option<i64> {
        Some(self.back_ns? - self.sent_ns?)
    }
}

/// Echo that arrived at the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Sequence number of the packet.
    pub(super) sequence: u64,
    /// Time of arrival, in nanoseconds since the start of the run.
    pub(super) at_ns: i64,
    /// Traffic class with which the packet reached the reflector, if known.
    pub(super) seen_class: Option<u8>,
}

/// Returns each traffic class with which packets reached the reflector, and the number of returned packets in
/// this class. Call [`account`] first: a packet counts only if its return is already recorded in `trips`.
pub(super) fn seen_classes(trips: &[Trip], arrivals: &[Arrival]) -> Vec<(u8, u64)> {
    let mut classes: Vec<(u8, u64)> = Vec::new();
    for arrival in arrivals {
        let trip = usize::try_from(arrival.sequence)
            .ok()
            .and_then(|at| trips.get(at));
        let is_first = trip.is_some_and(|trip| trip.back_ns == Some(arrival.at_ns));
        let Some(class) = arrival.seen_class.filter(|_| is_first) else {
            continue;
        };
        match classes.iter_mut().find(|(seen, _)| *seen == class) {
            Some((_, count)) => *count += 1,
            None => classes.push((class, 1)),
        }
    }
    classes
}

/// Numbers of packets that were sent, returned, lost, duplicated or reordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Number of packets that the system accepted.
    pub sent: u64,
    /// Number of packets that the system refused, for example because its buffers were full.
    pub not_sent: u64,
    /// Number of packets that returned at least once.
    pub returned: u64,
    /// Number of packets that were sent but did not return.
    pub lost: u64,
    /// Number of echoes after the first echo of their packet.
    pub duplicates: u64,
    /// Number of packets whose first echo arrived after the first echo of a later packet (RFC 4737,
    /// 3.3).
    pub reordered: u64,
    /// Number of packets that do not belong to this run, or that echo a packet that was not sent.
    pub strangers: u64,
}

/// Records the arrivals in the trips and counts the packets by fate. `arrivals` must be in order of arrival,
/// and `trips` must be in order of sequence numbers.
pub(super) fn account(trips: &mut [Trip], arrivals: &[Arrival]) -> Tally {
    let mut tally = Tally::default();
    let mut next_expected = 0;
    for arrival in arrivals {
        let trip = usize::try_from(arrival.sequence)
            .ok()
            .and_then(|sequence| trips.get_mut(sequence))
            .filter(|trip| trip.sent_ns.is_some());
        match trip {
            None => tally.strangers += 1,
            Some(trip) if trip.back_ns.is_some() => tally.duplicates += 1,
            Some(trip) => {
                trip.back_ns = Some(arrival.at_ns);
                tally.returned += 1;
                if arrival.sequence < next_expected {
                    tally.reordered += 1
                } else {
                    next_expected = arrival.sequence + 1
                }
            }
        }
    }
    tally.sent = trips.iter().filter(|trip| trip.sent_ns.is_some()).count() as u64;
    tally.not_sent = trips.len() as u64 - tally.sent;
    tally.lost = tally.sent - tally.returned;
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trips(count: i64) -> Vec<Trip> {
        (0..count)
            .map(|n| Trip {
                intended_ns: n * 100,
                sent_ns: Some(n * 100 + 1),
                back_ns: None,
            })
            .collect()
    }

    fn arrivals(sequences: &[u64]) -> Vec<Arrival> {
        let at = |n: usize| n as i64 * 100 + 50;
        (0..)
            .zip(sequences)
            .map(|(n, &sequence)| Arrival {
                sequence,
                at_ns: at(n),
                seen_class: Some(if sequence % 2 == 0 { 184 } else { 0 }),
            })
            .collect()
    }

    #[test]
    fn every_fate_is_counted_once() {
        let mut trips = trips(7);
        trips[6].sent_ns = None;
        // Packet 3 is lost, packet 1 arrives after packet 2, packet 4 arrives twice, packet 6 was
        // not sent, and packet 900 does not exist.
        let tally = account(&mut trips, &arrivals(&[0, 2, 1, 4, 4, 5, 6, 900]));
        let expected = Tally {
            sent: 6,
            not_sent: 1,
            returned: 5,
            lost: 1,
            duplicates: 1,
            reordered: 1,
            strangers: 2,
        };
        assert_eq!(tally, expected);
        // Packets 0, 2, 1, 4 and 5 count once each. Even numbers have class 184, odd numbers have
        // class 0.
        let classes = seen_classes(&trips, &arrivals(&[0, 2, 1, 4, 4, 5, 6, 900]));
        assert_eq!(classes, [(184, 3), (0, 2)]);
        assert_eq!(trips[1].round_trip_ns(), Some(250 - 101));
        assert_eq!(trips[4].back_ns, Some(350), "the first echo counts");
        assert_eq!(trips[3].round_trip_ns(), None);
        assert_eq!(trips[6].round_trip_ns(), None);
    }

    /// RFC 4737, 3.3: a packet is reordered if its number is below the next expected number. A
    /// reordered packet does not change the next expected number.
    #[test]
    fn reordering_follows_the_standard() {
        let mut four_late = trips(6);
        assert_eq!(
            account(&mut four_late, &arrivals(&[5, 0, 1, 2, 3, 4])).reordered,
            5
        );
        let mut one_early = trips(6);
        assert_eq!(
            account(&mut one_early, &arrivals(&[0, 1, 3, 2, 4, 5])).reordered,
            1
        );
        let mut with_gap = trips(6);
        assert_eq!(
            account(&mut with_gap, &arrivals(&[0, 2, 4, 5])).reordered,
            0
        );
    }
}
