//! Lookup of the function that readied a thread.

use tables::{StacksView, StoreError, Table};

use crate::{Case, Wait};

/// Returns the innermost function on the readying thread's call stack, if the stack was recorded.
pub(super) fn function(case: &Case<'_>, wait: &Wait) -> Result<Option<String>, StoreError> {
    let (Some(stack), Some(time)) = (wait.readying_stack_id, wait.readied_ns) else {
        return Ok(None);
    };
    let stack = i64::from(stack);
    let table = case.table(Table::Stacks)?;
    for batch in case.batches(&table, stack..stack + 1, &["stack_id", "addresses"]) {
        let batch = batch?;
        let view = StacksView::new(&batch)?;
        let Ok(row) = view.stack_id.binary_search(&stack) else {
            continue;
        };
        let address = view.addresses.get(row).first();
        return Ok(address.and_then(|address| {
            let image = image(case, *address, wait.readying_process_id, time)?;
            Some(case.symbol(Some(image), *address))
        }));
    }
    Ok(None)
}

/// Finds the image of the kernel or of a process that contained an address at a time. Returns the
/// row in `images`.
pub(super) fn image(
    case: &Case<'_>,
    address: u64,
    process_id: Option<u32>,
    time: i64,
) -> Option<u32> {
    let images = &case.names.images;
    let holds = |row: usize| {
        let base = images.base_address[row];
        let owner = images.process_id.get(row);
        (owner == Some(0) || owner == process_id)
            && address
                .checked_sub(base)
                .is_some_and(|offset| offset < images.size_bytes[row])
            && images.load_ns.get(row).is_none_or(|load| load <= time)
            && images.unload_ns.get(row).is_none_or(|unload| time < unload)
    };
    let row = (0..images.base_address.len()).find(|row| holds(*row))?;
    u32::try_from(row).ok()
}
