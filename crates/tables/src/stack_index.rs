//! Which stack belongs to which event.
//!
//! A stack is logged after the event that it belongs to, names that event's raw time and thread,
//! and comes in up to two halves, plain or as keys that are defined later still. So stacks are
//! gathered from the whole trace before any event looks for its own.

use std::hash::BuildHasher;

use etl::Event;
use events::kernel::{Stack, StackDefinition, StackReference};
use hashbrown::{DefaultHashBuilder, HashTable};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::Stacks;
use crate::column::Addresses;

/// Stack, hook 0x1820.
const PLAIN: u16 = 0x1820;
/// A stack key means what follows it here: created, deleted, rundown.
const DEFINITIONS: std::ops::RangeInclusive<u16> = 0x1822..=0x1824;
/// A key of the kernel half.
const KERNEL_KEY: u16 = 0x1825;
/// A key of the user half.
const USER_KEY: u16 = 0x1826;

/// Distinct runs of addresses, numbered in the order in which they were met.
#[derive(Default)]
pub(crate) struct Interner {
    addresses: Addresses,
    count: u32,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl std::fmt::Debug for Interner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interner")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl Interner {
    fn number(&mut self, addresses: &[u64]) -> u32 {
        let Interner {
            addresses: known,
            count,
            numbers,
            hasher,
        } = self;
        let hash = |addresses: &[u64]| hasher.hash_one(addresses);
        let entry = numbers.entry(
            hash(addresses),
            |number| known.get(*number as usize) == addresses,
            |number| hash(known.get(*number as usize)),
        );
        match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let number = *count;
                entry.insert(number);
                known.push(addresses);
                *count += 1;
                number
            }
        }
    }
}

/// Which part of a stack it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Kernel,
    User,
}

/// Whose stack it is: a thread's or, since the idle threads of all CPUs have the id 0, a CPU's idle
/// thread's. Other threads' ids do not tell of a CPU: a thread may have left it when the user half
/// of its stack is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owner(u32);

impl Owner {
    fn new(thread_id: u32, cpu: u16) -> Owner {
        match thread_id {
            // No thread's id: those are multiples of 4 and count from below.
            0 => Owner(u32::MAX - u32::from(cpu)),
            _ => Owner(thread_id),
        }
    }
}

/// A half of a stack, of the event at `event_ns`.
#[derive(Clone, Copy, Debug)]
struct Part {
    event_ns: i64,
    owner: Owner,
    half: Half,
    /// Number in [`Interner`].
    addresses: u32,
}

impl Part {
    /// By the event's time, then whose it is, then the half; a number, which is quick to compare.
    fn order(&self) -> u128 {
        let time = self.event_ns.cast_unsigned() ^ 1 << 63;
        u128::from(time) << 64 | u128::from(self.owner.0) << 32 | self.half as u128
    }
}

/// A half of a stack that is defined later.
#[derive(Clone, Copy, Debug)]
struct Reference {
    event_ns: i64,
    logged_ns: i64,
    owner: Owner,
    half: Half,
    key: u64,
}

/// The stack events of one CPU stream.
#[derive(Debug, Default)]
pub(crate) struct StackEvents {
    interner: Interner,
    parts: Vec<Part>,
    references: Vec<Reference>,
    /// Key, when it was defined, and as what.
    definitions: Vec<(u64, i64, u32)>,
    scratch: Vec<u64>,
}

impl StackEvents {
    /// Whether the hook is one of stacks.
    pub(crate) fn has(hook: u16) -> bool {
        matches!(hook, PLAIN | 0x1822..=USER_KEY)
    }

    /// Keeps a stack event; `None` if the payload is unreadable.
    pub(crate) fn push(&mut self, hook: u16, event: &Event<'_>) -> Option<()> {
        let (payload, version) = (event.payload(), event.version()?);
        let width = event.pointer_size();
        let time = |raw: u64| Some(event.clock().to_ns(i64::try_from(raw).ok()?));
        if hook == PLAIN {
            let stack = Stack::read(payload, version, width)?;
            let event_ns = time(stack.event_time)?;
            self.scratch.clear();
            self.scratch.extend(stack.addresses);
            let half = half_of(&self.scratch, width);
            let addresses = self.interner.number(&self.scratch);
            self.parts.push(Part {
                event_ns,
                owner: Owner::new(stack.thread_id, event.cpu()),
                half,
                addresses,
            });
        } else if DEFINITIONS.contains(&hook) {
            let definition = StackDefinition::read(payload, version, width)?;
            self.scratch.clear();
            self.scratch.extend(definition.addresses);
            let addresses = self.interner.number(&self.scratch);
            self.definitions
                .push((definition.key, event.time_ns(), addresses));
        } else {
            let reference = StackReference::read(payload, version, width)?;
            self.references.push(Reference {
                event_ns: time(reference.event_time)?,
                logged_ns: event.time_ns(),
                owner: Owner::new(reference.thread_id, event.cpu()),
                half: if hook == KERNEL_KEY {
                    Half::Kernel
                } else {
                    Half::User
                },
                key: reference.key,
            });
        }
        Some(())
    }
}

/// An event that holds both halves begins in the kernel.
fn half_of(addresses: &[u64], pointer_size: usize) -> Half {
    let kernel_begins: u64 = if pointer_size == 4 {
        0x8000_0000
    } else {
        0xFFFF_0000_0000_0000
    };
    match addresses.first() {
        Some(first) if *first >= kernel_begins => Half::Kernel,
        _ => Half::User,
    }
}

/// The stacks of a trace's events, by time and thread.
#[derive(Debug, Default)]
pub(crate) struct StackIndex {
    /// Time of the event, whose it is, its stack; sorted.
    uses: Vec<(i64, Owner, u32)>,
}

/// Goes through the uses of stacks along with events in time order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StackCursor(usize);

impl StackIndex {
    /// Joins what all CPU streams logged: halves with each other, keys with their definitions.
    /// Gives the distinct stacks too.
    pub(crate) fn build(streams: Vec<StackEvents>) -> (StackIndex, Stacks) {
        let mut interner = Interner::default();
        let mut parts: Vec<Part> = Vec::new();
        let mut references: Vec<Reference> = Vec::new();
        let mut definitions: FxHashMap<u64, Vec<(i64, u32)>> = FxHashMap::default();
        for stream in streams {
            let shared: Vec<u32> = (0..stream.interner.count)
                .map(|number| interner.number(stream.interner.addresses.get(number as usize)))
                .collect();
            let number = |local: u32| shared[local as usize];
            parts.extend(stream.parts.into_iter().map(|part| Part {
                addresses: number(part.addresses),
                ..part
            }));
            references.extend(stream.references);
            for (key, time, addresses) in stream.definitions {
                let defined = definitions.entry(key).or_default();
                defined.push((time, number(addresses)));
            }
        }
        for defined in definitions.values_mut() {
            defined.sort_by_key(|(time, _)| *time);
        }
        // A key means its first definition at or after the use: it is written when the kernel
        // forgets the stack, and the key may then get another.
        parts.extend(references.into_iter().filter_map(|reference| {
            let defined = definitions.get(&reference.key)?;
            let at = defined.partition_point(|(time, _)| *time < reference.logged_ns);
            Some(Part {
                event_ns: reference.event_ns,
                owner: reference.owner,
                half: reference.half,
                addresses: defined.get(at)?.1,
            })
        }));
        // Stable, so that of several halves of a kind the first logged by a CPU comes first.
        parts.par_sort_by_key(Part::order);
        join_halves(&parts, &interner.addresses)
    }

    /// The stack of an event of a thread on a CPU, for events that come in time order.
    #[inline]
    pub(crate) fn at(
        &self,
        cursor: &mut StackCursor,
        time_ns: i64,
        thread_id: u32,
        cpu: u16,
    ) -> Option<u32> {
        let owner = Owner::new(thread_id, cpu);
        // Events of a slice of time may begin a little before those of the one before ended.
        while cursor.0 > 0 && self.uses.get(cursor.0 - 1)?.0 >= time_ns {
            cursor.0 -= 1;
        }
        while self.uses.get(cursor.0)?.0 < time_ns {
            cursor.0 += 1;
        }
        self.uses[cursor.0..]
            .iter()
            .take_while(|(time, ..)| *time == time_ns)
            .find(|(_, of, _)| *of == owner)
            .map(|(.., stack)| *stack)
    }

    /// The stack of an event of a thread on a CPU.
    pub(crate) fn find(&self, time_ns: i64, thread_id: u32, cpu: u16) -> Option<u32> {
        let key = (time_ns, Owner::new(thread_id, cpu));
        let at = self
            .uses
            .partition_point(|(time, of, _)| (*time, *of) < key);
        let (time, of, stack) = *self.uses.get(at)?;
        ((time, of) == key).then_some(stack)
    }
}

/// Puts the halves of each event's stack together, the kernel's first.
fn join_halves(parts: &[Part], addresses: &Addresses) -> (StackIndex, Stacks) {
    let mut index = StackIndex::default();
    let mut stacks = Interner::default();
    // Most stacks are met again and again: what two halves make is remembered.
    let mut known: FxHashMap<(u32, Option<u32>), u32> = FxHashMap::default();
    let mut whole: Vec<u64> = Vec::new();
    let same_event = |a: &Part, b: &Part| (a.event_ns, a.owner) == (b.event_ns, b.owner);
    for event in parts.chunk_by(same_event) {
        let first = event[0];
        let user = event
            .iter()
            .find(|part| first.half == Half::Kernel && part.half == Half::User)
            .map(|part| part.addresses);
        let stack = *known.entry((first.addresses, user)).or_insert_with(|| {
            whole.clear();
            whole.extend_from_slice(addresses.get(first.addresses as usize));
            if let Some(user) = user {
                whole.extend_from_slice(addresses.get(user as usize));
            }
            stacks.number(&whole)
        });
        index.uses.push((first.event_ns, first.owner, stack));
    }
    let table = Stacks {
        stack_id: (0..i64::from(stacks.count)).collect(),
        addresses: stacks.addresses,
    };
    (index, table)
}
