//! Waits for the answers to messages that threads with windows sent to other threads. These waits have the same wait
//! reason as waits for messages, so only the stack tells them apart.

use rustc_hash::{FxHashMap, FxHashSet};
use tables::{ImageTracker, StoreError};

use crate::survey::{Response, without_sent};
use crate::thresholds::NOTICED_NS;
use crate::{Case, ThreadWaits};

/// Modules that contain the functions of windows in the kernel.
pub(super) const WIN32K: [&str; 2] = ["win32kfull.sys", "win32k.sys"];
/// Function in which a thread waits until another thread has handled its message. Microsoft does not document it.
pub(super) const SEND_MESSAGE: &str = "xxxInterSendMsgEx";
/// Parts of the names of functions in which a thread waits for messages to its own windows.
const WAIT_FOR_MESSAGES: [&str; 3] = ["GetMessage", "WaitMessage", "MsgWaitForMultipleObjects"];
/// Number of waits for messages that the threads of two windows must have ended for each other, from which on these may be
/// answers to sent messages.
const ANSWERS: u64 = 3;
/// Maximum number of stacks that are searched for sent messages.
const STACKS: usize = 4_096;

/// Stacks of waits for the answers to sent messages.
pub(super) struct SentMessages {
    stacks: FxHashSet<u32>,
    /// Responses of the threads that had such waits, by id and row of the thread.
    responses: FxHashMap<(u32, Option<u32>), Vec<Response>>,
    /// Reason why such waits may exist unseen.
    pub(super) may_be_unseen: Option<&'static str>,
}

impl SentMessages {
    pub(super) fn read(case: &Case<'_>, images: &ImageTracker) -> Result<SentMessages, StoreError> {
        let threads = &case.survey.threads;
        let mut waits: Vec<(u32, i64, Option<u32>)> = threads
            .iter()
            .flat_map(|thread| {
                let stacks = thread.message_stacks.iter();
                stacks.map(|(stack, at_ns)| (*stack, *at_ns, thread.process_id))
            })
            .collect();
        waits.sort_unstable();
        waits.dedup_by_key(|(stack, ..)| *stack);
        waits.truncate(STACKS);
        let wanted = waits.iter().map(|(stack, ..)| *stack).collect();
        let frames = case.stacks(&wanted)?;
        let mut stacks = FxHashSet::default();
        let mut known = FxHashSet::default();
        for (stack, at_ns, process_id) in waits {
            let frames = frames.get(&stack).into_iter().flatten();
            let functions = frames.filter_map(|address| {
                let row = images.lookup(process_id.unwrap_or(0), *address, at_ns)?;
                let row = u32::try_from(row).ok();
                let module = case.module_label(row)?.to_lowercase();
                case.function(row, *address)
                    .filter(|_| WIN32K.contains(&module.as_str()))
            });
            let is_sent = is_of_sent_message(functions);
            known.extend(is_sent.map(|_| stack));
            stacks.extend(is_sent.filter(|is_sent| *is_sent).map(|_| stack));
        }
        let has_sent = |thread: &&ThreadWaits| {
            let mut of_thread = thread.message_stacks.iter();
            of_thread.any(|(stack, _)| stacks.contains(stack))
        };
        let senders: Vec<&ThreadWaits> = threads.iter().filter(has_sent).collect();
        let responses = if senders.is_empty() {
            FxHashMap::default()
        } else {
            without_sent(case, &senders, &stacks)?
        };
        let may_be_unseen = may_be_unseen(threads, &known);
        Ok(SentMessages {
            stacks,
            responses,
            may_be_unseen,
        })
    }

    /// Returns true if the stack is of a wait for the answer to a sent message.
    pub(super) fn has(&self, stack_id: Option<u32>) -> bool {
        stack_id.is_some_and(|stack| self.stacks.contains(&stack))
    }

    /// Returns the responses of a thread. A wait for the answer to a sent message is a part of a response.
    pub(super) fn responses<'s>(&'s self, thread: &'s ThreadWaits) -> &'s [Response] {
        let key = (thread.thread_id, thread.thread_row);
        self.responses.get(&key).unwrap_or(&thread.responses)
    }
}

/// Returns the reason why waits for the answers to sent messages may exist unseen: windows of two programs answered each
/// other several times, and no stack shows whether one of them waited for the other. `known` has the stacks that show this.
fn may_be_unseen(threads: &[ThreadWaits], known: &FxHashSet<u32>) -> Option<&'static str> {
    let ends_waits = |by: &ThreadWaits, waiter: &ThreadWaits, at_least_ns: i64| {
        let mut wakers = waiter.message_wakers.iter();
        wakers.any(|(waker, times, ns)| {
            *waker == (by.thread_id, by.thread_row) && *times >= ANSWERS && *ns >= at_least_ns
        })
    };
    let mut unknown = threads.iter().filter(|thread| {
        let mut stacks = thread.message_stacks.iter();
        !thread.message_wakers.is_empty()
            && !stacks.any(|(stack, _)| known.contains(stack))
            && (threads.iter())
                .any(|by| ends_waits(by, thread, NOTICED_NS) && ends_waits(thread, by, 0))
    });
    unknown.next().map(|thread| if thread.message_stacks.is_empty() { "windows of two programs answered each other, and no stacks of context switches show whether one \
                 waited for the other" } else { "windows of two programs answered each other, and without symbols of win32kfull.sys, the stacks do \
                  not show whether one waited for the other" })
}

/// Returns whether a thread with these functions of win32k on its stack, the innermost first, waits for the answer to a
/// sent message. The innermost function decides: a message can lead to a loop that waits for messages, for example of a
/// menu. Returns `None` if the functions show neither.
fn is_of_sent_message(mut functions: impl Iterator<Item = String>) -> Option<bool> {
    functions.find_map(|function| {
        let is_own = WAIT_FOR_MESSAGES.iter().any(|part| function.contains(part));
        (is_own || function.contains(SEND_MESSAGE)).then_some(!is_own)
    })
}

#[cfg(test)]
mod tests {
    use super::is_of_sent_message;

    #[test]
    fn the_innermost_function_shows_whether_a_message_was_sent() {
        let is_sent = |functions: &[&str]| {
            let functions = functions
                .iter()
                .map(|name| format!("win32kfull.sys!{name}"));
            is_of_sent_message(functions)
        };
        let send = [
            "xxxSleepThread2",
            "xxxInterSendMsgEx",
            "xxxSendMessageTimeout",
        ];
        let get = [
            "xxxSleepThread2",
            "xxxRealInternalGetMessage",
            "NtUserGetMessage",
        ];
        let menu = ["xxxRealWaitMessageEx", "xxxMNLoop", "xxxInterSendMsgEx"];
        assert_eq!(is_sent(&send), Some(true));
        assert_eq!(is_sent(&get), Some(false));
        assert_eq!(is_sent(&menu), Some(false));
        assert_eq!(is_sent(&["xxxSleepThread2"]), None);
    }
}
