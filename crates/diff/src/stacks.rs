//! Sampled call stacks of both sides as one tree.

use std::collections::{BTreeMap, BTreeSet};

use explain::Reader;
use rustc_hash::FxHashMap;
use tables::{StacksView, StoreError, Table};

use crate::Recording;
use crate::functions::{Code, FunctionNames};
use crate::samples::Place;

/// Maximum number of stacks of a recording. If there are more stacks, those with the least time are left out.
pub(crate) const MOST_STACKS: usize = 200_000;

/// Minimum share of a caller's change. A callee is blamed for the change only if it has at least this share.
const BLAMED: f64 = 0.8;

/// Sampled stacks of a recording.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    code: Vec<Code>,
    stacks: Vec<Stack>,
    /// Frames of all stacks, stack after stack. A frame is an index in `code`. The first frame of a stack is
    /// its outermost call.
    frames: Vec<u32>,
}

#[derive(Debug)]
struct Stack {
    root: Root,
    /// Id of the stack, and its process.
    id: (u32, Place),
    /// Exclusive end of the frames of this stack in `frames`. The frames begin at the `end` of the previous
    /// stack.
    end: usize,
    ns: f64,
}

/// Code in which the stacks of a tree begin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// DPCs and service routines.
    Interrupts,
    /// Threads of the program with this name in lower case.
    Program(String),
}

impl Stacks {
    /// Reads the frames of the sampled stacks.
    pub(crate) fn read(
        reader: &Reader<'_>,
        functions: &mut FunctionNames<'_>,
        sampled: FxHashMap<(u32, Place), f64>,
    ) -> Result<Stacks, StoreError> {
        let mut sampled: Vec<((u32, Place), f64)> = sampled.into_iter().collect();
        if sampled.len() > MOST_STACKS {
            sampled.sort_by(|(a, old), (b, new)| new.total_cmp(old).then(a.cmp(b)));
            sampled.truncate(MOST_STACKS);
        }
        sampled.sort_by_key(|(id, _)| *id);
        let mut stacks = Stacks::default();
        each(
            reader,
            &sampled,
            |((id, _), _)| *id,
            |(id, ns), addresses| {
                let (root, process_id) = match id.1 {
                    Place::Interrupt => (Root::Interrupts, 0),
                    Place::Process(row) => {
                        let process = reader.names.process(Some(row), None);
                        let Some(name) = process.name else {
                            return;
                        };
                        (Root::Program(name.to_lowercase()), process.id.unwrap_or(0))
                    }
                };
                let addresses = addresses.iter().rev();
                let frames = addresses.filter_map(|it| functions.in_process(process_id, *it));
                stacks.frames.extend(frames);
                stacks.stacks.push(Stack {
                    root,
                    id: *id,
                    end: stacks.frames.len(),
                    ns: *ns,
                });
            },
        )?;
        stacks.code = functions.all().to_vec();
        Ok(stacks)
    }

    /// Returns the total time of the given stacks, in nanoseconds.
    pub(crate) fn time_of(&self, stacks: &[(u32, Place)]) -> f64 {
        let all = self.stacks.iter();
        let some = all.filter(|stack| stacks.binary_search(&stack.id).is_ok());
        some.map(|stack| stack.ns).sum()
    }

    fn each(&self) -> impl Iterator<Item = (&Stack, &[u32])> {
        let starts = std::iter::once(0).chain(self.stacks.iter().map(|stack| stack.end));
        let all = starts.zip(&self.stacks);
        all.map(|(start, stack)| (stack, &self.frames[start..stack.end]))
    }
}

/// Calls `with` with each wanted stack and its addresses, the innermost frame first. `wanted` is sorted by the
/// id of the stack. Stacks that the trace does not have are left out.
pub(crate) fn each<T>(
    reader: &Reader<'_>,
    wanted: &[T],
    id: impl Fn(&T) -> u32,
    mut with: impl FnMut(&T, &[u64]),
) -> Result<(), StoreError> {
    let table = reader.table(Table::Stacks)?;
    let mut left = wanted;
    for (number, chunk) in table.chunks().iter().enumerate() {
        let here = left.partition_point(|it| i64::from(id(it)) <= chunk.last);
        let (now, later) = left.split_at(here);
        left = later;
        if now.is_empty() {
            continue;
        }
        reader.check()?;
        let batch = table.read(number, &["stack_id", "addresses"])?;
        let view = StacksView::new(&batch)?;
        for it in now {
            if let Ok(row) = view.stack_id.binary_search(&i64::from(id(it))) {
                with(it, view.addresses.get(row));
            }
        }
    }
    Ok(())
}

/// Calls of the sampled stacks of both sides, for example for a differential flame graph.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Calls of the tree. A call comes after its caller.
    pub calls: Vec<Call>,
    /// Index in `calls` of each root. The root of DPCs and ISRs is [`Root::Interrupts`], and each other root
    /// is a program.
    pub roots: BTreeMap<Root, usize>,
}

/// Call in a [`Tree`], with its sampled time in nanoseconds per second of the recordings.
#[derive(Clone, Debug)]
pub struct Call {
    /// Name of the function, or of the module if a recording has no symbols for it.
    pub name: String,
    /// Index of the caller; `None` for a root.
    pub caller: Option<usize>,
    /// Time in the call itself, without its callees, before the change.
    pub own_before_ns: f64,
    /// Time in the call itself, without its callees, after the change.
    pub own_after_ns: f64,
    /// Time in the call and its callees before the change.
    pub before_ns: f64,
    /// Time in the call and its callees after the change.
    pub after_ns: f64,
}

impl Call {
    /// Returns the change of the time in the call and its callees.
    pub fn change_ns(&self) -> f64 {
        self.after_ns - self.before_ns
    }
}

impl Tree {
    /// Unites the stacks of both sides in one tree. Returns an empty tree if a recording has no stacks.
    pub fn new(before: &[Recording], after: &[Recording]) -> Tree {
        let all = || before.iter().chain(after);
        if all().any(|recording| recording.stacks.stacks.is_empty()) {
            return Tree::default();
        }
        let unnamed = unnamed([before, after]);
        let mut tree = Tree::default();
        let mut callees: FxHashMap<(usize, Box<str>), usize> = FxHashMap::default();
        for (side, recordings) in [before, after].into_iter().enumerate() {
            let seconds: f64 = recordings.iter().map(|recording| recording.seconds).sum();
            for recording in recordings {
                let names = names(recording, &unnamed);
                for (stack, frames) in recording.stacks.each() {
                    let mut at = tree.root(&stack.root);
                    for name in path(frames, &names) {
                        let next = tree.calls.len();
                        at = *callees.entry((at, name.into())).or_insert_with(|| {
                            tree.calls.push(Call::new(name, Some(at)));
                            next
                        });
                    }
                    let call = &mut tree.calls[at];
                    let own = match side {
                        0 => &mut call.own_before_ns,
                        _ => &mut call.own_after_ns,
                    };
                    *own += stack.ns / seconds;
                }
            }
        }
        tree.add_up();
        tree
    }

    fn root(&mut self, root: &Root) -> usize {
        if let Some(known) = self.roots.get(root) {
            return *known;
        }
        let name = match root {
            Root::Interrupts => "DPCs and ISRs",
            Root::Program(name) => name,
        };
        self.calls.push(Call::new(name, None));
        self.roots.insert(root.clone(), self.calls.len() - 1);
        self.calls.len() - 1
    }

    fn add_up(&mut self) {
        for at in (0..self.calls.len()).rev() {
            let call = &mut self.calls[at];
            call.before_ns += call.own_before_ns;
            call.after_ns += call.own_after_ns;
            let (before, after, caller) = (call.before_ns, call.after_ns, call.caller);
            if let Some(caller) = caller {
                self.calls[caller].before_ns += before;
                self.calls[caller].after_ns += after;
            }
        }
    }

    /// Returns the deepest call below a root that explains the change. On the path from the root to this
    /// call, each call has at least 80 % of the change of its caller. Returns `None` if no callee of the root
    /// has 80 % of the root's change. If other callees of a caller changed in the opposite direction by more than
    /// 20 % of its change, work moved from one callee to another, and none of them is blamed.
    pub fn blamed(&self, root: &Root) -> Option<usize> {
        let root = *self.roots.get(root)?;
        let mut heaviest: BTreeMap<usize, usize> = BTreeMap::new();
        let mut opposite: BTreeMap<usize, f64> = BTreeMap::new();
        for (at, call) in self.calls.iter().enumerate() {
            let Some(caller) = call.caller else {
                continue;
            };
            // Find the callee with the greatest change that has the same sign as the change of the caller.
            let sign = self.calls[caller].change_ns().signum();
            let size = |at: usize| self.calls[at].change_ns() * sign;
            let best = heaviest.entry(caller).or_insert(at);
            if size(at) > size(*best) {
                *best = at;
            }
            *opposite.entry(caller).or_default() += size(at).min(0.0);
        }
        let mut at = root;
        while let Some(callee) = heaviest.get(&at) {
            let (part, whole) = (self.calls[*callee].change_ns(), self.calls[at].change_ns());
            let moved = opposite.get(&at).map_or(0.0, |it| -it / whole.abs());
            if whole == 0.0 || part / whole < BLAMED || moved > 1.0 - BLAMED {
                break;
            }
            at = *callee;
        }
        (at != root).then_some(at)
    }

    /// Returns the names of a call and its callers below the root, the outermost first.
    pub fn path(&self, call: usize) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = call;
        while let Some(caller) = self.calls[at].caller {
            path.push(self.calls[at].name.as_str());
            at = caller;
        }
        path.reverse();
        path
    }

    /// Returns the stacks of a recording that reach a call. A stack is identified by its id and its `Place`.
    pub(crate) fn reaching(
        &self,
        call: usize,
        root: &Root,
        recording: &Recording,
        sides: [&[Recording]; 2],
    ) -> Vec<(u32, Place)> {
        let path_to = self.path(call);
        let unnamed = unnamed(sides);
        let names = names(recording, &unnamed);
        let stacks = recording.stacks.each().filter(|(stack, frames)| {
            let mut calls = path(frames, &names);
            stack.root == *root && path_to.iter().all(|name| calls.next() == Some(*name))
        });
        stacks.map(|(stack, _)| stack.id).collect()
    }
}

/// Returns the modules that have no symbols in at least one recording, in lower case.
fn unnamed(sides: [&[Recording]; 2]) -> BTreeSet<&str> {
    let all = sides.into_iter().flatten();
    all.flat_map(|recording| recording.symbols.unnamed.iter().map(|module| &**module))
        .collect()
}

/// Returns the name in the tree of each `code` of a recording. If a recording has no symbols for a module, all code of
/// the module has the name of the module, because its functions in the two recordings cannot be matched.
fn names<'r>(recording: &'r Recording, unnamed: &BTreeSet<&str>) -> Vec<&'r str> {
    let named = recording
        .stacks
        .code
        .iter()
        .map(|code| match &code.function {
            Some(function) if !unnamed.contains(&*code.module.to_lowercase()) => &**function,
            _ => &*code.module,
        });
    named.collect()
}

/// Returns the names of the frames of a stack. Consecutive frames with the same name are one call.
fn path<'n>(frames: &[u32], names: &[&'n str]) -> impl Iterator<Item = &'n str> {
    let mut before = None;
    let names = frames.iter().map(|frame| names[*frame as usize]);
    names.filter(move |name| before.replace(*name) != Some(*name))
}

impl Call {
    fn new(name: &str, caller: Option<usize>) -> Call {
        Call {
            name: name.to_owned(),
            caller,
            own_before_ns: 0.0,
            own_after_ns: 0.0,
            before_ns: 0.0,
            after_ns: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, caller: Option<usize>, own_before_ns: f64, own_after_ns: f64) -> Call {
        Call {
            own_before_ns,
            own_after_ns,
            ..Call::new(name, caller)
        }
    }

    /// Returns a tree of DPCs and ISRs.
    fn tree(calls: Vec<Call>) -> Tree {
        let mut tree = Tree {
            calls,
            roots: BTreeMap::from([(Root::Interrupts, 0)]),
        };
        tree.add_up();
        tree
    }

    /// Returns the tree of PerfView's published example of a comparison. In this example, main calls f and g,
    /// f calls x, and g calls y.
    fn perfview() -> Tree {
        tree(vec![
            call("program", None, 0.0, 0.0),
            call("main", Some(0), 0.0, 0.0),
            call("f", Some(1), 25.0, 25.0),
            call("g", Some(1), 25.0, 25.0),
            call("x", Some(2), 25.0, 35.0),
            call("y", Some(3), 25.0, 25.0),
        ])
    }

    /// Checks that the deepest call that has most of the change is blamed. PerfView's columns
    /// "responsibility" and "overweight" are not used. Responsibility is the share of the change. Overweight
    /// compares the growth of a row with the growth of all rows, which shows nothing about chance.
    #[test]
    fn the_deepest_call_with_the_change_is_blamed() {
        let tree = perfview();
        let changes: Vec<f64> = tree.calls.iter().map(Call::change_ns).collect();
        assert_eq!(changes, [10.0, 10.0, 10.0, 0.0, 10.0, 0.0]);
        assert_eq!(
            (tree.calls[1].before_ns, tree.calls[1].after_ns),
            (100.0, 110.0)
        );
        let blamed = tree.blamed(&Root::Interrupts).unwrap();
        assert_eq!(tree.path(blamed), ["main", "f", "x"]);
        // x and y each have half of the change, so neither of them is blamed.
        let mut tree = perfview();
        tree.calls[5].after_ns += 10.0;
        tree.calls[3].after_ns += 10.0;
        tree.calls[1].after_ns += 10.0;
        tree.calls[0].after_ns += 10.0;
        let blamed = tree.blamed(&Root::Interrupts).unwrap();
        assert_eq!(tree.path(blamed), ["main"]);
    }

    /// Checks that a function is not blamed if only its caller changed: f called x before, and g calls x after the
    /// change.
    #[test]
    fn a_call_that_moved_is_not_blamed() {
        let tree = tree(vec![
            call("program", None, 0.0, 0.0),
            call("main", Some(0), 0.0, 10.0),
            call("f", Some(1), 0.0, 0.0),
            call("g", Some(1), 0.0, 0.0),
            call("x", Some(2), 100.0, 0.0),
            call("x", Some(3), 0.0, 110.0),
        ]);
        let blamed = tree.blamed(&Root::Interrupts).unwrap();
        assert_eq!(tree.path(blamed), ["main"]);
    }

    #[test]
    fn neighbours_with_one_name_are_one_call() {
        let names = ["a", "b", "a"];
        let calls: Vec<&str> = path(&[0, 2, 1, 1, 0], &names).collect();
        assert_eq!(calls, ["a", "b", "a"]);
    }
}
