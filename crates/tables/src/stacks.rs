//! `stacks`: the distinct call stacks of a trace.

use crate::column::Addresses;
use crate::schema::table;

table! {
    /// One row per distinct call stack; tables of events name it by its id. `stack_id` is the
    /// number of the row.
    ///
    /// A stack joins the event that has exactly the raw time that the stack names, of the same
    /// thread; of an idle thread, on the same CPU. Its kernel and user halves, logged apart, are one stack here.
    Stacks, StacksView = "stacks" sorted by stack_id {
        /// Its id, and the number of its row.
        stack_id: Vec<i64> = "first use",
        /// Return addresses, the innermost call first; kernel before user addresses.
        addresses: Addresses = "Stack, StackKeyKernel, StackKeyUser: addresses",
    }
}
