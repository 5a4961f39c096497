//! Facts that several theories share, but that need more than the sums of [`Survey`](crate::Survey): the chain of threads
//! that led to a delay, the causes of a wait for a CPU, and what users noticed of it.

pub(crate) mod cpu_wait;
pub(crate) mod disk_waits;
pub(crate) mod floods;
pub(crate) mod freezes;
pub(crate) mod holder_times;
pub(crate) mod holders;
pub(crate) mod interruptions;
pub(crate) mod parts;
pub(crate) mod path;
pub(crate) mod raisers;
pub(crate) mod routine_times;
pub(crate) mod smb_cost;
pub(crate) mod starved_threads;
pub(crate) mod traffic;
pub(crate) mod user_attention;
pub(crate) mod waiter;
pub(crate) mod wakers;

use crate::{Case, Name};

/// Length of the kernel's clock tick, in nanoseconds.
pub(crate) const TICK_NS: i64 = 15_625_000;

/// Returns the name of the routine at an address of an image: its module, and its function if symbols name it.
pub(crate) fn routine_name(case: &Case<'_>, image_row: Option<u32>, address: u64) -> String {
    let Some(module) = case.module_label(image_row) else {
        return "an unknown module".to_owned();
    };
    let function = case.symbol(image_row, address);
    match function.split_once('!') {
        Some((_, function)) => format!("{} ({})", Name(module), Name(function)),
        None => Name(module).to_string(),
    }
}
