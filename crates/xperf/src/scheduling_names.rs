//! Names of numbers that describe threads. A number without a name stays a number.

use crate::layout::Value;

/// Returns the name of a thread's state.
pub(crate) fn state(state: Value<'_>) -> Value<'_> {
    name(state, tables::thread_state)
}

/// Returns the name of a wait reason.
pub(crate) fn wait_reason(reason: Value<'_>) -> Value<'_> {
    name(reason, tables::wait_reason)
}

/// Returns the name of a wait mode. The wait mode determines whether the stack of the waiting thread may be
/// paged out.
pub(crate) fn swapable(wait_mode: Value<'_>) -> Value<'_> {
    name(wait_mode, |mode| {
        ["NonSwap", "Swapable"].get(usize::from(mode)).copied()
    })
}

/// Returns the name of the reason for a priority change.
pub(crate) fn adjust_reason(reason: Value<'_>) -> Value<'_> {
    name(reason, |reason| {
        ["None", "Unwait", "Boost"]
            .get(usize::from(reason))
            .copied()
    })
}

fn name(value: Value<'_>, name: impl Fn(u8) -> Option<&'static str>) -> Value<'_> {
    let number = value.number().and_then(|number| u8::try_from(number).ok());
    number.and_then(name).map_or(value, Value::Text)
}
