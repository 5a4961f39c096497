//! `stacks`: the distinct call stacks of a trace.

use etl::Event;
use events::ids::hook;
use events::kernel::{Stack, StackDefinition, StackReference};
use tables::import::{Half, StackEvents};

use crate::register::Reads;

/// Events from which the rows are made.
pub(crate) const READS: Reads = Reads {
    hooks: &[
        hook::STACK..=hook::STACK,
        hook::STACK_KEY_CREATE..=hook::STACK_KEY_USER,
    ],
    ..Reads::NOTHING
};

/// Adds a stack event. Returns `None` if the payload of the event is unreadable.
pub(crate) fn push(stacks: &mut StackEvents, hook: u16, event: &Event<'_>) -> Option<()> {
    let (payload, version) = (event.payload(), event.version()?);
    let width = event.pointer_size();
    let time = |raw: u64| Some(event.clock().to_ns(i64::try_from(raw).ok()?));
    if hook == hook::STACK {
        let stack = Stack::read(payload, version, width)?;
        let place = (time(stack.event_time)?, event.cpu());
        let half = half_of(stack.addresses.clone().next(), width);
        stacks.push_half(place, stack.thread_id, half, stack.addresses);
    } else if matches!(hook, hook::STACK_KEY_CREATE..=hook::STACK_KEY_RUNDOWN) {
        let definition = StackDefinition::read(payload, version, width)?;
        stacks.push_definition(event.time_ns(), definition.key, definition.addresses);
    } else {
        let reference = StackReference::read(payload, version, width)?;
        let place = (time(reference.event_time)?, event.cpu());
        let half = if hook == hook::STACK_KEY_KERNEL {
            Half::Kernel
        } else {
            Half::User
        };
        let logged_ns = event.time_ns();
        stacks.push_reference(place, logged_ns, reference.thread_id, half, reference.key);
    }
    Some(())
}

/// Returns the half to which logged addresses with this first address belong. If the addresses contain both halves, returns the
/// kernel half, because such a stack begins in the kernel.
fn half_of(first: Option<u64>, pointer_size: usize) -> Half {
    let kernel_begins: u64 = if pointer_size == 4 {
        0x8000_0000
    } else {
        0xFFFF_0000_0000_0000
    };
    match first {
        Some(first) if first >= kernel_begins => Half::Kernel,
        _ => Half::User,
    }
}
