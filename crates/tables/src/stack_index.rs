//! Finds the stack of an event.
//!
//! The stack of an event is logged after the event. It is logged with the raw time and the thread of the
//! event. A stack has up to two halves (kernel and user). A half is logged either as addresses or as a key.
//! The addresses of a key are logged even later than the key. Therefore all stacks of the trace are collected
//! before events are joined with stacks.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::Stacks;
use crate::column::Addresses;

/// List of distinct address lists. The lists are numbered in the order of their first use.
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

/// Half of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Addresses of the kernel. They come first.
    Kernel,
    /// Addresses of the program.
    User,
}

/// Thread of a stack. The idle threads of all CPUs have the id 0. So for idle threads, the owner also
/// identifies the CPU. For other threads, the CPU is ignored, because a thread may move to another CPU before
/// the user half of its stack is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owner(u32);

impl Owner {
    /// Returns the owner for the thread that an event names. Only idle threads need the CPU, because they share an id.
    fn new(thread_id: u32, cpu: impl Into<Option<u16>>) -> Owner {
        match (thread_id, cpu.into()) {
            // Thread ids are far smaller than this number. So no thread has this id.
            (0, Some(cpu)) => Owner(u32::MAX - u32::from(cpu)),
            (thread_id, _) => Owner(thread_id),
        }
    }
}

/// Half of a stack. The stack belongs to an event at the time `event_ns`.
#[derive(Clone, Copy, Debug)]
struct Part {
    event_ns: i64,
    owner: Owner,
    half: Half,
    /// Number of the half's address list in [`Interner`].
    addresses: u32,
}

impl Part {
    /// Returns the sort key: the time of the event, the owner and the half. The three values are combined in
    /// one number, because one number is fast to compare.
    fn order(&self) -> u128 {
        let time = self.event_ns.cast_unsigned() ^ 1 << 63;
        u128::from(time) << 64 | u128::from(self.owner.0) << 32 | self.half as u128
    }
}

/// Half of a stack that was logged as a key. The addresses of this key are logged later.
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
pub struct StackEvents {
    interner: Interner,
    parts: Vec<Part>,
    references: Vec<Reference>,
    /// Definitions of keys. Each has the key, the time of the definition, and the number of the address list
    /// in [`Interner`].
    definitions: Vec<(u64, i64, u32)>,
    /// Switches of Linux. The stack of a switch belongs to the thread that leaves the CPU.
    switches: Vec<Switch>,
    scratch: Vec<u64>,
}

/// Switch of a recording of Linux.
#[derive(Clone, Copy, Debug)]
struct Switch {
    time_ns: i64,
    cpu: u16,
    old_thread_id: u32,
    new_thread_id: u32,
    /// Number of the address list in [`Interner`]; `None` if the switch has no stack.
    addresses: Option<u32>,
}

impl StackEvents {
    /// Adds the stack of an event of Linux.
    pub fn push_chain(
        &mut self,
        (event_ns, cpu): (i64, Option<u16>),
        thread_id: u32,
        addresses: impl Iterator<Item = u64>,
    ) {
        let Some(addresses) = self.chain(addresses) else {
            return;
        };
        // A call chain contains both halves. The kernel half comes first.
        self.parts.push(Part {
            event_ns,
            owner: Owner::new(thread_id, cpu),
            half: Half::Kernel,
            addresses,
        });
    }

    /// Adds a switch of Linux from an old to a new thread. The stack belongs to the old thread.
    pub fn push_switch(
        &mut self,
        (time_ns, cpu): (i64, u16),
        (old_thread_id, new_thread_id): (u32, u32),
        addresses: impl Iterator<Item = u64>,
    ) {
        let addresses = self.chain(addresses);
        self.switches.push(Switch {
            time_ns,
            cpu,
            old_thread_id,
            new_thread_id,
            addresses,
        });
    }

    fn chain(&mut self, addresses: impl Iterator<Item = u64>) -> Option<u32> {
        self.scratch.clear();
        self.scratch.extend(addresses);
        let is_empty = self.scratch.is_empty();
        (!is_empty).then(|| self.interner.number(&self.scratch))
    }

    /// Adds a half of the stack of an event.
    pub fn push_half(
        &mut self,
        (event_ns, cpu): (i64, u16),
        thread_id: u32,
        half: Half,
        addresses: impl Iterator<Item = u64>,
    ) {
        let addresses = self.number(addresses);
        self.parts.push(Part {
            event_ns,
            owner: Owner::new(thread_id, cpu),
            half,
            addresses,
        });
    }

    /// Adds the addresses of a key. The key is used earlier.
    pub fn push_definition(
        &mut self,
        time_ns: i64,
        key: u64,
        addresses: impl Iterator<Item = u64>,
    ) {
        let addresses = self.number(addresses);
        self.definitions.push((key, time_ns, addresses));
    }

    /// Adds a half of the stack of an event that was logged as a key at the time `logged_ns`.
    pub fn push_reference(
        &mut self,
        (event_ns, cpu): (i64, u16),
        logged_ns: i64,
        thread_id: u32,
        half: Half,
        key: u64,
    ) {
        self.references.push(Reference {
            event_ns,
            logged_ns,
            owner: Owner::new(thread_id, cpu),
            half,
            key,
        });
    }

    fn number(&mut self, addresses: impl Iterator<Item = u64>) -> u32 {
        self.scratch.clear();
        self.scratch.extend(addresses);
        self.interner.number(&self.scratch)
    }
}

/// Stacks of the events of a trace, by time and thread.
#[derive(Debug, Default)]
pub struct StackIndex {
    /// Uses of stacks. Each has the time of the event, the owner and the stack id. The list is sorted.
    uses: Vec<(i64, Owner, u32)>,
}

/// Position in [`StackIndex`]. It makes look-ups in time order fast.
#[derive(Clone, Copy, Debug, Default)]
pub struct StackCursor(usize);

impl StackIndex {
    /// Joins the stack events of all CPU streams. Joins the two halves of each stack, and keys with their
    /// definitions. Also returns the distinct stacks.
    pub fn build(streams: Vec<StackEvents>) -> (StackIndex, Stacks) {
        let mut interner = Interner::default();
        let mut parts: Vec<Part> = Vec::new();
        let mut references: Vec<Reference> = Vec::new();
        let mut switches: Vec<Switch> = Vec::new();
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
            switches.extend(stream.switches.into_iter().map(|switch| Switch {
                addresses: switch.addresses.map(number),
                ..switch
            }));
            for (key, time, addresses) in stream.definitions {
                let defined = definitions.entry(key).or_default();
                defined.push((time, number(addresses)));
            }
        }
        for defined in definitions.values_mut() {
            defined.sort_by_key(|(time, _)| *time);
        }
        // A use of a key belongs to the first definition of the key that is not earlier than the use. The kernel writes
        // the definition when it frees the stack. After that, the kernel may use the key for another stack.
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
        parts.extend(stacks_of_waits(switches));
        // The sort is stable. So if several halves have the same sort key, the half that a CPU logged first
        // comes first.
        parts.par_sort_by_key(Part::order);
        join_halves(&parts, &interner.addresses)
    }

    /// Returns the stack id of an event. If events are looked up in time order, the look-up is fast.
    #[inline]
    pub fn at(
        &self,
        cursor: &mut StackCursor,
        time_ns: i64,
        thread_id: u32,
        cpu: impl Into<Option<u16>>,
    ) -> Option<u32> {
        let owner = Owner::new(thread_id, cpu);
        // The first events of a slice may be a little older than the last events of the previous slice. So
        // the cursor can also move back.
        while cursor.0 > 0 && self.uses.get(cursor.0 - 1)?.0 >= time_ns {
            cursor.0 -= 1;
        }
        while self.uses.get(cursor.0)?.0 < time_ns {
            cursor.0 += 1;
        }
        self.uses[cursor.0..]
            .iter()
            .take_while(|(time, ..)| *time == time_ns)
            .find(|(_, used_by, _)| *used_by == owner)
            .map(|(.., stack)| *stack)
    }

    /// Returns the stack id of an event.
    pub fn find(&self, time_ns: i64, thread_id: u32, cpu: u16) -> Option<u32> {
        let key = (time_ns, Owner::new(thread_id, cpu));
        let at = self
            .uses
            .partition_point(|(time, owner, _)| (*time, *owner) < key);
        let (time, owner, stack) = *self.uses.get(at)?;
        ((time, owner) == key).then_some(stack)
    }
}

/// Returns the stacks at which threads of Linux left their CPUs. The time of each stack is the time at which the thread
/// got a CPU again. Windows records the stack of a switch in this form: the stack belongs to the new thread and shows
/// where this thread waited.
fn stacks_of_waits(mut switches: Vec<Switch>) -> Vec<Part> {
    if switches.iter().all(|switch| switch.addresses.is_none()) {
        return Vec::new();
    }
    switches.sort_by_key(|switch| switch.time_ns);
    let mut left: FxHashMap<u32, u32> = FxHashMap::default();
    let mut parts = Vec::new();
    for switch in switches {
        match switch.addresses {
            Some(addresses) => left.insert(switch.old_thread_id, addresses),
            None => left.remove(&switch.old_thread_id),
        };
        if switch.new_thread_id != 0
            && let Some(addresses) = left.remove(&switch.new_thread_id)
        {
            parts.push(Part {
                event_ns: switch.time_ns,
                owner: Owner::new(switch.new_thread_id, switch.cpu),
                half: Half::Kernel,
                addresses,
            });
        }
    }
    parts
}

/// Joins the two halves of the stack of each event. The kernel half comes first.
fn join_halves(parts: &[Part], addresses: &Addresses) -> (StackIndex, Stacks) {
    let mut index = StackIndex::default();
    let mut stacks = Interner::default();
    // Most stacks occur many times. So the stack id of each pair of halves is stored.
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
