//! `stacks`: the distinct call stacks of a trace.

use crate::column::Addresses;
use crate::register::Register;
use crate::schema::table;

table! {
    /// One row per distinct call stack. Tables of events refer to a stack by the number of its row,
    /// `stack_id`.
    ///
    /// A stack is logged in a separate event, which states a raw time and a thread. The stack belongs to the
    /// event with exactly this raw time and this thread. For an idle thread, the CPU must also be the same.
    /// The kernel half and the user half of a stack are logged separately, but they form one row.
    Stacks, StacksView = "stacks" sorted by stack_id {
        /// Identifier of the stack. It is also the number of the row.
        stack_id: Vec<i64> = "first use",
        /// Return addresses. The innermost call comes first. So kernel addresses are before user addresses.
        addresses: Addresses = "Stack, StackKeyKernel, StackKeyUser: addresses",
    }
}

impl Register for Stacks {}
