//! Code in which threads waited, from the call stacks of context switches.

use std::ops::Range;

use explain::Reader;
use rustc_hash::FxHashMap;
use tables::{CpuRunsView, StoreError, Table};

use crate::functions::{Code, FunctionNames};
use crate::stacks::{self, MOST_STACKS};

/// Modules of the kernel, in lower case. The innermost functions of the stack of each wait are in these modules.
const KERNEL: [&str; 5] = [
    "ntoskrnl.exe",
    "ntkrnlmp.exe",
    "win32k.sys",
    "win32kbase.sys",
    "win32kfull.sys",
];

/// Modules of Windows, in lower case. Programs call functions of these modules to wait.
const CALLED: [&str; 8] = [
    "ntdll.dll",
    "kernel32.dll",
    "kernelbase.dll",
    "win32u.dll",
    "user32.dll",
    "wow64.dll",
    "wow64cpu.dll",
    "wow64win.dll",
];

/// Code that waited, by process row and stack.
pub(crate) struct WaitCode(FxHashMap<(u32, u32), Code>);

impl WaitCode {
    /// Finds the code that waited in each stack of the runs in a time range. The number of stacks is limited.
    /// Stacks beyond the limit have no code.
    pub(crate) fn read(
        reader: &Reader<'_>,
        functions: &mut FunctionNames<'_>,
        range: Range<i64>,
    ) -> Result<WaitCode, StoreError> {
        let mut code_by_wait: FxHashMap<(u32, u32), Code> = FxHashMap::default();
        if !reader.has(Table::Stacks)? {
            return Ok(WaitCode(code_by_wait));
        }
        let mut wanted: Vec<(u32, u32)> = Vec::new();
        let runs = reader.table(Table::CpuRuns)?;
        for batch in reader.batches(&runs, range, &["stack_id", "process_row", "waits_ns"]) {
            let batch = batch?;
            let runs = CpuRunsView::new(&batch)?;
            let waits =
                (0..runs.len()).filter(|row| runs.waits_ns.get(*row).is_some_and(|ns| ns > 0));
            wanted.extend(
                waits.filter_map(|row| runs.stack_id.get(row).zip(runs.process_row.get(row))),
            );
            if wanted.len() > 4 * MOST_STACKS {
                wanted.sort_unstable();
                wanted.dedup();
                wanted.truncate(MOST_STACKS);
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted.truncate(MOST_STACKS);
        stacks::each(
            reader,
            &wanted,
            |(stack, _)| *stack,
            |(stack, process), addresses| {
                let process_id = reader.names.process(Some(*process), None).id;
                let frames = addresses
                    .iter()
                    .filter_map(|it| functions.in_process(process_id.unwrap_or(0), *it));
                let frames: Vec<u32> = frames.collect();
                if let Some(code) = waiting(&frames, functions) {
                    code_by_wait.insert((*process, *stack), code);
                }
            },
        )?;
        Ok(WaitCode(code_by_wait))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the code that waited in a stack of a process.
    pub(crate) fn at(&self, process: Option<u32>, stack: Option<u32>) -> Option<&Code> {
        self.0.get(&(process?, stack?))
    }
}

/// Returns the code that waited: the innermost function outside the modules of Windows that only pass the wait
/// on. If there is no such function, returns the innermost function outside the kernel. A stack that is
/// completely in the kernel is named by its module, because its innermost functions are the same for all waits.
fn waiting(frames: &[u32], functions: &FunctionNames<'_>) -> Option<Code> {
    let module = |id: u32| functions.code(id).module.to_lowercase();
    let is_kernel = |id: u32| KERNEL.contains(&&*module(id));
    let is_called = |id: u32| CALLED.contains(&&*module(id));
    let outside = frames
        .iter()
        .find(|id| !is_kernel(**id) && !is_called(**id));
    let outside = outside.or_else(|| frames.iter().find(|id| !is_kernel(**id)));
    match outside {
        Some(id) => Some(functions.code(*id).clone()),
        None => Some(Code {
            module: functions.code(*frames.first()?).module.clone(),
            function: None,
        }),
    }
}
