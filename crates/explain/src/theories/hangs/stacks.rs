//! Causes of waits that the stacks of the waiting threads show.

use rustc_hash::FxHashSet;
use tables::{ImageTracker, StoreError};

use super::chain::Chain;
use super::sent_messages::{SEND_MESSAGE, WIN32K};
use crate::chain::parts::{Kind, What, thread_name};
use crate::chain::path::Leg;
use crate::{Case, Name, Source};

/// Cause of a wait that a stack shows.
pub(super) struct StackCause {
    /// Sentence about the cause.
    pub(super) sentence: String,
    /// Remedy. It is `None` if the chain of threads names a better one.
    pub(super) remedy: Option<String>,
    pub(super) source: Source,
}

/// Known cause, with the frames of stacks that show it.
struct KnownCause {
    /// File names of the modules that may contain the frame, in lower case.
    modules: &'static [&'static str],
    /// Parts of the names of functions. If the list is empty, every function of the modules shows the cause.
    functions: &'static [&'static str],
    /// Continuation of “The stack shows that it waited …”.
    waited: &'static str,
    remedy: &'static str,
    source: Source,
}

const FILTERS: Source = Source {
    title: "Microsoft: Filter Manager Concepts (minifilter drivers, fltmgr.sys)",
    url: Some("https://learn.microsoft.com/windows-hardware/drivers/ifs/filter-manager-concepts"),
};

const SENT_MESSAGES: Source = Source {
    title: "Microsoft: About Messages and Message Queues (sent messages)",
    url: Some("https://learn.microsoft.com/windows/win32/winmsg/about-messages-and-message-queues"),
};

/// Known causes in the order in which they are searched. The first cause that a stack shows is reported.
const KNOWN: [KnownCause; 8] = [
    KnownCause {
        modules: &["ntdll.dll"],
        functions: &[
            "LdrpAcquireLoaderLock",
            "LdrLockLoaderLock",
            "LdrpDrainWorkQueue",
        ],
        waited: "for the loader lock, which a thread holds while a DLL is loaded, unloaded or initialized",
        remedy: "Find the DLL that did long work in DllMain or was read slowly: the thread that held the \
            lock is in the chain above, and its stack contains the name of the DLL",
        source: Source {
            title: "Microsoft: Dynamic-Link Library Best Practices (loader lock)",
            url: Some(
                "https://learn.microsoft.com/windows/win32/dlls/dynamic-link-library-best-practices",
            ),
        },
    },
    KnownCause {
        modules: &["clr.dll", "coreclr.dll", "clrgc.dll"],
        functions: &[
            "gc_heap::",
            "GCHeap::",
            "SuspendEE",
            "RareDisablePreemptiveGC",
        ],
        waited: "for a garbage collection of .NET",
        remedy: "Let the program allocate less, or let it collect in the background (concurrent \
            collection); record the provider Microsoft-Windows-DotNETRuntime for the number and the \
            lengths of its pauses",
        source: Source {
            title: "Microsoft: Fundamentals of garbage collection (.NET)",
            url: Some(
                "https://learn.microsoft.com/dotnet/standard/garbage-collection/fundamentals",
            ),
        },
    },
    KnownCause {
        modules: &["mrxsmb.sys", "mrxsmb10.sys", "mrxsmb20.sys", "rdbss.sys"],
        functions: &[],
        waited: "for a file server: the stack contains the SMB redirector",
        remedy: "Look at the file server and the network to it. A window should not wait for files of a \
            server",
        source: Source {
            title: "Microsoft: The Redirected Drive Buffering Subsystem (rdbss.sys)",
            url: Some(
                "https://learn.microsoft.com/windows-hardware/drivers/ifs/the-redirected-drive-buffering-subsystem",
            ),
        },
    },
    KnownCause {
        modules: &["dnsapi.dll"],
        functions: &[],
        waited: "for the resolution of a name (DNS)",
        remedy: "Check the DNS servers of the machine, or the name that the program looks up",
        source: Source {
            title: "Microsoft: DnsQuery_W (windns.h)",
            url: Some("https://learn.microsoft.com/windows/win32/api/windns/nf-windns-dnsquery_w"),
        },
    },
    KnownCause {
        modules: &["winhttp.dll", "wininet.dll"],
        functions: &[],
        waited: "for an answer from the web (WinHTTP or WinINet)",
        remedy: "A window must not wait for the network: let another thread do this request",
        source: Source {
            title: "Microsoft: About WinHTTP",
            url: Some("https://learn.microsoft.com/windows/win32/winhttp/about-winhttp"),
        },
    },
    KnownCause {
        modules: &["winspool.drv"],
        functions: &[],
        waited: "for the print spooler",
        remedy: "Check the printers and their drivers, mainly network printers that do not answer",
        source: Source {
            title: "Microsoft: Print Spooler Architecture",
            url: Some(
                "https://learn.microsoft.com/windows-hardware/drivers/print/introduction-to-spooler-components",
            ),
        },
    },
    KnownCause {
        modules: &["dxgkrnl.sys", "dxgmms1.sys", "dxgmms2.sys"],
        functions: &[],
        waited: "for the graphics adapter (DirectX graphics kernel)",
        remedy: "Update the graphics driver. Record the provider Microsoft-Windows-DxgKrnl to see the \
            queues of the adapter",
        source: Source {
            title: "Microsoft: Windows Display Driver Model (WDDM) architecture",
            url: Some(
                "https://learn.microsoft.com/windows-hardware/drivers/display/windows-vista-and-later-display-driver-model-architecture",
            ),
        },
    },
    KnownCause {
        modules: &WIN32K,
        functions: &[SEND_MESSAGE, "xxxSendMessage"],
        waited: "for another window, to which it had sent a message (SendMessage)",
        remedy: "Find the window that did not respond at this time: the trace does not show which thread got the message",
        source: SENT_MESSAGES,
    },
];

/// Modules of Windows that the filter manager may call. They are not filter drivers of other vendors.
const FILE_SYSTEMS: [&str; 12] = [
    "ntoskrnl.exe",
    "ntkrnlmp.exe",
    "ntkrnlpa.exe",
    "hal.dll",
    "fltmgr.sys",
    "ntfs.sys",
    "refs.sys",
    "fastfat.sys",
    "exfat.sys",
    "rdbss.sys",
    "mup.sys",
    "npfs.sys",
];

/// Frame of a stack: its module in lower case, and its function.
struct Frame {
    module: String,
    symbol: String,
}

/// Returns the cause that the stacks of a chain show. The stack of the waiting thread comes first. If this
/// stack shows no cause, the stack of the blamed thread is used.
pub(super) fn cause(
    case: &Case<'_>,
    images: &ImageTracker,
    chain: &Chain<'_>,
) -> Result<Option<StackCause>, StoreError> {
    let me = chain.candidate.wait.thread_id;
    // The chain follows the other thread while a thread waits for it, so that the steps of this thread are short.
    let range = chain.candidate.range();
    let own_wait_ns = |leg: &Leg| {
        let is_within = leg.run.previous_out_ns >= Some(range.start);
        leg.run.waits_ns.filter(|_| is_within).unwrap_or(0)
    };
    let longest_of = |thread_id: u32| {
        let mut legs: Vec<&Leg> = chain.legs.iter().collect();
        legs.retain(|leg| leg.run.thread_id == thread_id);
        let longest = legs.into_iter().max_by_key(|leg| {
            if thread_id == me {
                own_wait_ns(leg)
            } else {
                leg.parts()[0]
            }
        });
        longest.map(|leg| {
            let run = &leg.run;
            (run.stack_id, run.process_id, run.start_ns, thread_id == me)
        })
    };
    // A response consists of several waits. The longest of them counts.
    let wait = &chain.candidate.wait;
    let own = match chain.candidate.kind {
        Kind::Response => longest_of(me),
        _ => Some((wait.stack_id, wait.process_id, wait.start_ns, true)),
    };
    let blamed = chain.blamed().filter(|part| {
        !matches!(
            part.what,
            What::Ran | What::Interrupted(_) | What::Ready | What::Unknown
        ) && part.who.thread_id != me
    });
    let blamed = blamed.and_then(|part| longest_of(part.who.thread_id));
    let known = own.into_iter().chain(blamed);
    let known =
        known.filter_map(|(stack, process, at, is_own)| Some((stack?, process, at, is_own)));
    let known: Vec<(u32, Option<u32>, i64, bool)> = known.collect();
    let wanted: FxHashSet<u32> = known.iter().map(|(stack, ..)| *stack).collect();
    if wanted.is_empty() {
        return Ok(None);
    }
    let stacks = case.stacks(&wanted)?;
    for (stack, process_id, at, is_own) in known {
        let Some(addresses) = stacks.get(&stack) else {
            continue;
        };
        let process_id = process_id.unwrap_or(0);
        let frames: Vec<Frame> = addresses
            .iter()
            .filter_map(|address| {
                let row = images.lookup(process_id, *address, at)?;
                let row = u32::try_from(row).ok();
                Some(Frame {
                    module: case.module_label(row)?.to_lowercase(),
                    symbol: case.symbol(row, *address),
                })
            })
            .collect();
        let who = if is_own {
            "The stack of the waiting thread".to_owned()
        } else {
            let part = chain.blamed().map(|part| thread_name(case, &part.who));
            format!("The stack of {}", part.unwrap_or_default())
        };
        if let Some(mut shown) = cause_of_frames(&who, &frames) {
            // The chain names the thread that got the message.
            let is_of_other = chain.blamed().is_some_and(|part| !chain.is_own(part));
            if is_of_other && shown.source.title == SENT_MESSAGES.title {
                shown.remedy = None;
            }
            return Ok(Some(shown));
        }
    }
    Ok(None)
}

fn cause_of_frames(who: &str, frames: &[Frame]) -> Option<StackCause> {
    if let Some(filter) = filter(frames) {
        return Some(StackCause {
            sentence: format!(
                "{who} shows that it waited in {}, a driver that filters the file system: \
                 fltmgr.sys had called this driver for a request to a file.",
                Name(&filter)
            ),
            remedy: Some(format!(
                "Update or remove the program that {} belongs to, or exclude these files in its settings. To confirm \
                 the cause, record again without this program",
                Name(&filter)
            )),
            source: FILTERS,
        });
    }
    KNOWN.iter().find_map(|known| {
        let is_of_it = |frame: &&Frame| {
            let function = frame
                .symbol
                .split_once('!')
                .map_or("", |(_, function)| function);
            known.modules.contains(&frame.module.as_str())
                && (known.functions.is_empty()
                    || known.functions.iter().any(|part| function.contains(part)))
        };
        let frame = frames.iter().find(is_of_it)?;
        Some(StackCause {
            sentence: format!(
                "{who} shows that it waited {} ({}).",
                known.waited,
                Name(&frame.symbol)
            ),
            remedy: Some(known.remedy.to_owned()),
            source: known.source,
        })
    })
}

/// Returns the innermost filter driver that the filter manager called. File systems and parts of the kernel are no
/// filter drivers. A filter driver may call the filter manager itself, for example to ask its service
/// (`FltSendMessage`).
fn filter(frames: &[Frame]) -> Option<String> {
    let calls = frames.windows(2).filter_map(|pair| match pair {
        [inside, caller] if caller.module == "fltmgr.sys" => Some(&inside.module),
        _ => None,
    });
    let mut filters =
        calls.filter(|module| !FILE_SYSTEMS.contains(&module.as_str()) && module.ends_with(".sys"));
    filters.next().cloned()
}
