//! Steps of the programs that threads execute.

use serde::{Deserialize, Deserializer, Serialize};

use super::spelling::understood;
use super::{Amount, Name};
use crate::quantity::{Bytes, Nanoseconds};

/// Functions on the stack, innermost first. Each is written as `module!function`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub(crate) struct Frames(pub(crate) Vec<String>);

/// A step of a program.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) verb: Verb,
    /// Frames that the step adds to the thread's stack; empty for none.
    pub(crate) frames: Frames,
    /// Name under which the truth reports the step's duration.
    pub(crate) measure: Option<String>,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Step, D::Error> {
        understood::<RawStep, Step, D>(deserializer)
    }
}

/// Kind of step.
#[derive(Clone, Debug)]
pub(crate) enum Verb {
    /// Uses the processor for this time.
    Run(Amount),
    /// Sleeps for this time. The sleep ends at a clock interrupt.
    Sleep(Amount),
    /// Sleeps until a moment, given as the time since the trace's start.
    Until(Nanoseconds),
    /// Waits until an object is set.
    Wait {
        object: Name,
        timeout: Option<Amount>,
        reason: WaitReason,
    },
    /// Sets an object: readies one waiting thread, or lets the next wait succeed at once.
    Set { object: Name, boost: u8 },
    /// Waits for a lock and takes it.
    Acquire { lock: Name, reason: WaitReason },
    /// Releases a lock to the thread that has waited longest.
    Release(Name),
    /// Reads from a disk or writes to it, and waits for completion.
    Transfer {
        write: bool,
        bytes: Bytes,
        disk: u32,
        file: Option<String>,
    },
    /// Flushes a disk's cache and waits for completion.
    Flush(u32),
    /// Accesses memory that must first be read from a file.
    Fault {
        bytes: Bytes,
        disk: u32,
        file: String,
    },
    /// Sends a packet of a flow.
    Send { flow: Name, bytes: Option<Bytes> },
    /// Waits for a packet or block of a flow.
    Receive(Name),
    /// Answers the last received block, so that the remote side sends the next one.
    Reply(Name),
    /// Waits for a message to a window of the process.
    Message,
    /// Posts a message to a process.
    Post(Name),
    /// Requests a timer resolution, or withdraws the request.
    Resolution(Option<Nanoseconds>),
    /// Moves the thread's process to or from the background. This adds or removes the bias of the process's
    /// scheduling group.
    Background(bool),
    /// Gives a process the focus.
    Focus(Name),
    /// Freezes a process.
    Freeze(Name),
    /// Thaws a process.
    Thaw(Name),
    /// Sets the base priority of the thread.
    Priority(u8),
    /// Starts a garbage collection of this generation in the thread's process. `None` ends the garbage collection.
    Collection(Option<u8>),
    /// Sets the number of threads in the .NET thread pool of the thread's process. `starved` is true if the reason for
    /// the change is a starving pool.
    PoolThreads { threads: u32, starved: bool },
    /// Writes a mark into the trace.
    Mark(String),
    /// Yields to a ready thread of the same priority.
    Yield,
    /// Repeats steps a number of times, or forever. At the moment `stop`, if it is given, the loop ends, even in the
    /// middle of its steps.
    Repeat {
        times: Option<u32>,
        stop: Option<Nanoseconds>,
        steps: Vec<Step>,
    },
    /// Ends the thread.
    Exit,
}

/// Reason of a wait, numbered as in context switch events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum WaitReason {
    Executive = 0,
    DelayExecution = 4,
    Suspended = 5,
    UserRequest = 6,
    WrExecutive = 7,
    WrPageIn = 9,
    WrUserRequest = 13,
    WrQueue = 15,
    WrLpcReceive = 16,
    WrLpcReply = 17,
    WrVirtualMemory = 18,
    WrKeyedEvent = 21,
    WrTerminated = 22,
    WrCpuRateControl = 24,
    WrKernel = 26,
    WrResource = 27,
    WrPushLock = 28,
    WrMutex = 29,
    WrQuantumEnd = 30,
    WrDispatchInt = 31,
    WrPreempted = 32,
    WrYieldExecution = 33,
    WrFastMutex = 34,
    WrAlertByThreadId = 37,
}

impl WaitReason {
    /// Returns true if the thread really waits. Returns false if it could continue but lost its
    /// processor.
    pub(crate) fn is_wait(self) -> bool {
        !matches!(
            self,
            WaitReason::WrQuantumEnd
                | WaitReason::WrDispatchInt
                | WaitReason::WrPreempted
                | WaitReason::WrYieldExecution
        )
    }
}

/// A step as a scenario writes it: one verb and its arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    run: Option<Amount>,
    sleep: Option<Amount>,
    until: Option<Nanoseconds>,
    wait: Option<Name>,
    set: Option<Name>,
    acquire: Option<Name>,
    release: Option<Name>,
    read: Option<Bytes>,
    write: Option<Bytes>,
    flush: Option<u32>,
    fault: Option<Bytes>,
    send: Option<Name>,
    receive: Option<Name>,
    reply: Option<Name>,
    message: Option<bool>,
    post: Option<Name>,
    resolution: Option<Resolution>,
    background: Option<bool>,
    focus: Option<Name>,
    freeze: Option<Name>,
    thaw: Option<Name>,
    priority: Option<u8>,
    collection: Option<Collection>,
    pool_threads: Option<u32>,
    mark: Option<String>,
    #[serde(rename = "yield")]
    yields: Option<bool>,
    repeat: Option<u32>,
    forever: Option<Vec<Step>>,
    exit: Option<bool>,

    // Arguments of the verbs.
    #[serde(rename = "in")]
    frames: Option<Frames>,
    measure: Option<String>,
    timeout: Option<Amount>,
    reason: Option<WaitReason>,
    boost: Option<u8>,
    disk: Option<u32>,
    file: Option<String>,
    bytes: Option<Bytes>,
    starved: Option<bool>,
    steps: Option<Vec<Step>>,
    stop: Option<Nanoseconds>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Resolution {
    None(bool),
    Some(Nanoseconds),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Collection {
    Ends(bool),
    Begins(u8),
}

/// Returns the verbs that a raw step contains, with their names. Each verb takes its arguments out of the raw step,
/// so that unused arguments can be reported.
macro_rules! verbs {
    ($raw:ident, $($name:literal: $field:ident => $verb:expr),+ $(,)?) => {{
        let mut verbs: Vec<(&'static str, Verb)> = Vec::new();
        $(if let Some($field) = $raw.$field.take() {
            let verb = $verb;
            verbs.push(($name, verb));
        })+
        Ok(verbs)
    }};
}

impl RawStep {
    fn take_verbs(&mut self) -> Result<Vec<(&'static str, Verb)>, String> {
        let raw = self;
        verbs!(raw,
            "run": run => Verb::Run(run),
            "sleep": sleep => Verb::Sleep(sleep),
            "until": until => Verb::Until(until),
            "wait": wait => Verb::Wait {
                object: wait,
                timeout: raw.timeout.take(),
                reason: raw.reason.take().unwrap_or(WaitReason::UserRequest),
            },
            "set": set => Verb::Set {
                object: set,
                boost: raw.boost.take().unwrap_or(1),
            },
            "acquire": acquire => Verb::Acquire {
                lock: acquire,
                reason: raw.reason.take().unwrap_or(WaitReason::WrAlertByThreadId),
            },
            "release": release => Verb::Release(release),
            "read": read => raw.transfer(false, read),
            "write": write => raw.transfer(true, write),
            "flush": flush => Verb::Flush(flush),
            "fault": fault => Verb::Fault {
                bytes: fault,
                disk: raw.disk.take().unwrap_or(0),
                file: raw.file.take().ok_or("`fault` needs a `file`")?,
            },
            "send": send => Verb::Send { flow: send, bytes: raw.bytes.take() },
            "receive": receive => Verb::Receive(receive),
            "reply": reply => Verb::Reply(reply),
            "message": message => require_true("message", message, Verb::Message)?,
            "post": post => Verb::Post(post),
            "resolution": resolution => Verb::Resolution(resolution.interval()?),
            "background": background => Verb::Background(background),
            "focus": focus => Verb::Focus(focus),
            "freeze": freeze => Verb::Freeze(freeze),
            "thaw": thaw => Verb::Thaw(thaw),
            "priority": priority => match priority {
                1..=31 => Verb::Priority(priority),
                _ => return Err(format!("`priority` must be 1 to 31, found {priority}")),
            },
            "collection": collection => Verb::Collection(collection.generation()?),
            "pool_threads": pool_threads => Verb::PoolThreads {
                threads: pool_threads,
                starved: raw.starved.take().unwrap_or(false),
            },
            "mark": mark => Verb::Mark(mark),
            "yield": yields => require_true("yield", yields, Verb::Yield)?,
            "repeat": repeat => Verb::Repeat {
                times: Some(repeat),
                stop: raw.stop.take(),
                steps: raw.steps.take().ok_or("`repeat` needs `steps`")?,
            },
            "forever": forever => Verb::Repeat {
                times: None,
                stop: raw.stop.take(),
                steps: forever,
            },
            "exit": exit => require_true("exit", exit, Verb::Exit)?,
        )
    }

    fn transfer(&mut self, write: bool, bytes: Bytes) -> Verb {
        Verb::Transfer {
            write,
            bytes,
            disk: self.disk.take().unwrap_or(0),
            file: self.file.take(),
        }
    }
}

impl Resolution {
    fn interval(self) -> Result<Option<Nanoseconds>, String> {
        match self {
            Resolution::Some(interval) => Ok(Some(interval)),
            Resolution::None(false) => Ok(None),
            Resolution::None(true) => Err(
                "`resolution` must be a duration such as \"0.5ms\", or false to withdraw it"
                    .to_owned(),
            ),
        }
    }
}

impl Collection {
    fn generation(self) -> Result<Option<u8>, String> {
        match self {
            Collection::Begins(generation @ 0..=2) => Ok(Some(generation)),
            Collection::Ends(false) => Ok(None),
            _ => Err("`collection` must be a generation from 0 to 2, or false".to_owned()),
        }
    }
}

impl TryFrom<RawStep> for Step {
    type Error = String;

    fn try_from(mut raw: RawStep) -> Result<Step, String> {
        let mut verbs = raw.take_verbs()?;
        let (name, verb) = match verbs.len() {
            1 => verbs.remove(0),
            0 => return Err("the step has no action (run, sleep, wait, …)".to_owned()),
            _ => {
                let names: Vec<_> = verbs.iter().map(|(name, _)| format!("`{name}`")).collect();
                return Err(format!(
                    "a step can have only one action, found {}",
                    names.join(" and ")
                ));
            }
        };
        let left = [
            ("timeout", raw.timeout.is_some()),
            ("reason", raw.reason.is_some()),
            ("boost", raw.boost.is_some()),
            ("disk", raw.disk.is_some()),
            ("file", raw.file.is_some()),
            ("bytes", raw.bytes.is_some()),
            ("starved", raw.starved.is_some()),
            ("steps", raw.steps.is_some()),
            ("stop", raw.stop.is_some()),
        ];
        if let Some((left, _)) = left.iter().find(|(_, is)| *is) {
            return Err(format!("`{left}` is not an argument of `{name}`"));
        }
        Ok(Step {
            verb,
            frames: raw.frames.unwrap_or_default(),
            measure: raw.measure,
        })
    }
}

/// Returns the verb of a step such as `yield = true`. The value `false` is an error.
fn require_true(name: &str, value: bool, verb: Verb) -> Result<Verb, String> {
    value
        .then_some(verb)
        .ok_or_else(|| format!("`{name} = false` has no effect; remove the step"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Result<Step, String> {
        toml::from_str(text).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn a_step_does_one_thing() {
        assert!(matches!(
            step("wait = 'go'\nreason = 'WrQueue'").unwrap().verb,
            Verb::Wait {
                reason: WaitReason::WrQueue,
                ..
            }
        ));
        assert!(matches!(
            step("read = '64 KiB'").unwrap().verb,
            Verb::Transfer {
                bytes: Bytes(65_536),
                write: false,
                ..
            }
        ));
        assert!(matches!(
            step("resolution = false").unwrap().verb,
            Verb::Resolution(None)
        ));
        let said = |text: &str| step(text).unwrap_err();
        assert!(said("in = ['a!b']").contains("has no action"));
        assert!(said("run = '1ms'\nsleep = '1ms'").contains("`run` and `sleep`"));
        assert!(said("run = '1ms'\ndisk = 1").contains("`disk` is not an argument of `run`"));
        assert!(said("read = '3 pages'").contains("found `3 pages`"));
        assert!(said("priority = 40").contains("1 to 31, found 40"));
    }
}
