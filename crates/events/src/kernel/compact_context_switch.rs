//! Event that contains several context switches of one CPU.

use etl::le;

/// CompactCSwitch, hook 0x0525: the context switches of one CPU since the previous CompactCSwitch event of
/// this CPU. The switches are packed into bits. Sources: System Informer's `ntwmi.h` and Geoff Chappell. No
/// public trace contains such an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactContextSwitches<'a> {
    /// Raw time in ticks of the trace's clock. The time of the first switch is this time plus the
    /// `time_delta` of the first packet.
    pub first_time: i64,
    /// Ids of the threads that packets refer to by index.
    pub thread_ids: [u32; 16],
    /// Base priority of each thread in `thread_ids`.
    pub base_priorities: [i8; 16],
    packets: &'a [u8],
}

/// One context switch: the old thread leaves the CPU, and a new thread starts. The new thread is the old
/// thread of the next switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactSwitch {
    /// Difference between the raw times of this switch and the previous switch.
    pub time_delta: u32,
    /// Thread that ran until this switch. `None` if the CPU was idle.
    pub old_thread: Option<CompactThread>,
}

/// Thread that leaves the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactThread {
    /// Id of the thread.
    pub thread_id: u32,
    /// Priority of the thread, 0 to 31.
    pub priority: i8,
    /// Wait reason if the thread waits. Otherwise this is the new thread state plus the number of wait
    /// reasons; see [`CompactThread::wait_reason`].
    pub state_or_wait_reason: u8,
    /// Duration of the wait in clock ticks. It is `None` if this type of packet has no field for the
    /// duration.
    pub wait_time: Option<u32>,
}

impl CompactThread {
    /// Returns the wait reason. Returns `None` if the thread does not wait. `wait_reasons` is the number of
    /// wait reasons in the traced version of Windows (`MaximumWaitReason`).
    pub fn wait_reason(&self, wait_reasons: u8) -> Option<u8> {
        Some(self.state_or_wait_reason).filter(|reason| *reason < wait_reasons)
    }

    /// Returns the thread's new state. It is 5 (waiting) if the thread has a wait reason.
    pub fn state(&self, wait_reasons: u8) -> u8 {
        self.state_or_wait_reason
            .checked_sub(wait_reasons)
            .unwrap_or(5)
    }
}

impl<'a> CompactContextSwitches<'a> {
    /// Reads the payload. Returns `None` if the payload is too short.
    pub fn read(payload: &'a [u8], _version: u8, _pointer_size: usize) -> Option<Self> {
        let (head, packets) = payload.split_first_chunk::<88>()?;
        let mut thread_ids = [0; 16];
        let mut base_priorities = [0; 16];
        for (i, (id, priority)) in thread_ids.iter_mut().zip(&mut base_priorities).enumerate() {
            *id = le::u32(head, 8 + i * 4)?;
            *priority = head[72 + i] as i8;
        }
        let first_time = le::i64(head, 0)?;
        Some(CompactContextSwitches {
            first_time,
            thread_ids,
            base_priorities,
            packets,
        })
    }

    /// Returns the switches, earliest first.
    pub fn switches(&self) -> impl Iterator<Item = CompactSwitch> + 'a {
        let CompactContextSwitches {
            thread_ids,
            base_priorities,
            mut packets,
            ..
        } = *self;
        std::iter::from_fn(move || {
            let (switch, size) = read_packet(packets, &thread_ids, &base_priorities)?;
            packets = packets.get(size..)?;
            Some(switch)
        })
    }
}

/// Returns the switch that the packet at the start of `bytes` describes, and the packet's size in
/// bytes. The two lowest bits of a packet are its type.
fn read_packet(
    bytes: &[u8],
    thread_ids: &[u32; 16],
    base_priorities: &[i8; 16],
) -> Option<(CompactSwitch, usize)> {
    let first = *bytes.first()?;
    let (bits, size) = match first & 3 {
        0 => (u64::from(le::u16(bytes, 0)?), 2),
        1 | 2 => (u64::from(le::u32(bytes, 0)?), 4),
        _ => (le::u64(bytes, 0)?, 8),
    };
    let field = |low: u32, width: u32| (bits >> low & ((1 << width) - 1)) as u32;
    let thread = |index: u32| {
        (
            thread_ids[index as usize & 15],
            base_priorities[index as usize & 15],
        )
    };
    let switch = match first & 3 {
        0 => CompactSwitch {
            time_delta: field(2, 14),
            old_thread: None,
        },
        1 => CompactSwitch {
            time_delta: field(2, 30),
            old_thread: None,
        },
        2 => {
            let (thread_id, base) = thread(field(2, 4));
            let old_thread = CompactThread {
                thread_id,
                priority: base.saturating_add(field(6, 3) as i8),
                state_or_wait_reason: field(9, 6) as u8,
                wait_time: None,
            };
            CompactSwitch {
                time_delta: field(15, 17),
                old_thread: Some(old_thread),
            }
        }
        _ => {
            let (thread_id, _) = thread(field(32, 4));
            let old_thread = CompactThread {
                thread_id,
                state_or_wait_reason: field(36, 6) as u8,
                priority: field(42, 5) as i8,
                wait_time: Some(field(47, 17)),
            };
            CompactSwitch {
                time_delta: field(2, 30),
                old_thread: Some(old_thread),
            }
        }
    };
    Some((switch, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_all_types_follow_each_other() {
        let mut payload = vec![0; 88];
        payload[0] = 100;
        payload[8 + 3 * 4] = 77;
        payload[72 + 3] = 8;
        payload.extend(((5u16) << 2).to_le_bytes());
        payload.extend((70_000u32 << 2 | 1).to_le_bytes());
        payload.extend((2u32 | 3 << 2 | 2 << 6 | 6 << 9 | 9 << 15).to_le_bytes());
        payload.extend((3u64 | 11 << 2 | 3 << 32 | 44 << 36 | 31 << 42 | 6 << 47).to_le_bytes());
        payload.push(3);
        let event = CompactContextSwitches::read(&payload, 2, 8).unwrap();
        assert_eq!(event.first_time, 100);
        let idle = |time_delta| CompactSwitch {
            time_delta,
            old_thread: None,
        };
        let busy = |time_delta, priority, state_or_wait_reason, wait_time| CompactSwitch {
            time_delta,
            old_thread: Some(CompactThread {
                thread_id: 77,
                priority,
                state_or_wait_reason,
                wait_time,
            }),
        };
        let switches: Vec<_> = event.switches().collect();
        assert_eq!(
            switches,
            [
                idle(5),
                idle(70_000),
                busy(9, 10, 6, None),
                busy(11, 31, 44, Some(6))
            ]
        );
        let threads: Vec<_> = switches
            .iter()
            .filter_map(|switch| switch.old_thread)
            .collect();
        assert_eq!(
            (threads[0].wait_reason(43), threads[0].state(43)),
            (Some(6), 5)
        );
        assert_eq!(
            (threads[1].wait_reason(43), threads[1].state(43)),
            (None, 1)
        );
        assert_eq!(CompactContextSwitches::read(&payload[..87], 2, 8), None);
    }
}
