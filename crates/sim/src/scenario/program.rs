//! What a thread does, step by step.

use serde::{Deserialize, Deserializer, Serialize};

use super::spelling::understood;
use super::{Amount, Name};
use crate::quantity::{Bytes, Nanoseconds};

/// Functions on the stack, innermost first, each `module!function`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub(crate) struct Frames(pub(crate) Vec<String>);

/// One step of a program. Steps that wait say on what; `frames` is where they do it.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) verb: Verb,
    /// Where on the stack; empty means the thread's own.
    pub(crate) frames: Frames,
    /// Name under which the truth tells how long the step took.
    pub(crate) measure: Option<String>,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Step, D::Error> {
        understood::<RawStep, Step, D>(deserializer)
    }
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Verb {
    /// Needs the processor for so long.
    Run(Amount),
    /// Sleeps for so long, with the clock's resolution.
    Sleep(Amount),
    /// Sleeps until a moment.
    Until(Nanoseconds),
    /// Waits for an object to be set.
    Wait {
        object: Name,
        timeout: Option<Amount>,
        reason: WaitReason,
    },
    /// Sets an object: one waiting thread becomes ready, or the next one need not wait.
    Set { object: Name, boost: u8 },
    /// Waits for a lock and takes it.
    Acquire { lock: Name, reason: WaitReason },
    /// Gives a lock to who waited longest.
    Release(Name),
    /// Reads from or writes to a disk and waits for it.
    Transfer {
        write: bool,
        bytes: Bytes,
        disk: u32,
        file: Option<String>,
    },
    /// Has a disk write what its cache holds, and waits for it.
    Flush(u32),
    /// Touches memory that must be read from a file first.
    Fault {
        bytes: Bytes,
        disk: u32,
        file: String,
    },
    /// Sends a packet of a flow.
    Send { flow: Name, bytes: Option<Bytes> },
    /// Waits for a packet (or block) of a flow.
    Receive(Name),
    /// Answers the block last received, so that the other side sends its next.
    Reply(Name),
    /// Waits for a message to a window of the process.
    Message,
    /// Posts a message to a process.
    Post(Name),
    /// Asks for a timer resolution, or takes the request back.
    Resolution(Option<Nanoseconds>),
    /// Whether the own process counts as one in the background, and so bears its group's bias.
    Background(bool),
    /// Gives a process the focus.
    Focus(Name),
    /// Stops a process's threads from running.
    Freeze(Name),
    /// Lets them run again.
    Thaw(Name),
    /// Sets the own base priority.
    Priority(u8),
    /// Writes a mark into the trace.
    Mark(String),
    /// Makes room for a thread of the same priority.
    Yield,
    /// Repeats steps: so often, or for ever; until a moment, when whatever it does ends.
    Repeat {
        times: Option<u32>,
        stop: Option<Nanoseconds>,
        steps: Vec<Step>,
    },
    /// Ends the thread.
    Exit,
}

/// Why a thread waits, as a context switch says it.
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
    /// Whether it is a wait, and not that the thread could go on but may not.
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

/// A step as it is spelt: one of the verbs, and what goes with it.
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
    mark: Option<String>,
    #[serde(rename = "yield")]
    yields: Option<bool>,
    repeat: Option<u32>,
    forever: Option<Vec<Step>>,
    exit: Option<bool>,

    // What goes with them.
    #[serde(rename = "in")]
    frames: Option<Frames>,
    measure: Option<String>,
    timeout: Option<Amount>,
    reason: Option<WaitReason>,
    boost: Option<u8>,
    disk: Option<u32>,
    file: Option<String>,
    bytes: Option<Bytes>,
    steps: Option<Vec<Step>>,
    stop: Option<Nanoseconds>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Resolution {
    None(bool),
    Some(Nanoseconds),
}

/// Takes what goes with a verb, so that what is left over can be reported.
macro_rules! verbs {
    ($raw:ident, $($name:literal: $field:ident => $verb:expr),+ $(,)?) => {{
        let mut found: Vec<(&'static str, Verb)> = Vec::new();
        $(if let Some($field) = $raw.$field.take() {
            found.push(($name, $verb($field, &mut $raw)?));
        })+
        found
    }};
}

impl TryFrom<RawStep> for Step {
    type Error = String;

    fn try_from(mut raw: RawStep) -> Result<Step, String> {
        type Raw<'a> = &'a mut RawStep;
        let mut found = verbs!(raw,
            "run": run => |run, _: Raw<'_>| ok(Verb::Run(run)),
            "sleep": sleep => |sleep, _: Raw<'_>| ok(Verb::Sleep(sleep)),
            "until": until => |until, _: Raw<'_>| ok(Verb::Until(until)),
            "wait": wait => |object, raw: Raw<'_>| ok(Verb::Wait {
                object,
                timeout: raw.timeout.take(),
                reason: raw.reason.take().unwrap_or(WaitReason::UserRequest),
            }),
            "set": set => |object, raw: Raw<'_>| ok(Verb::Set {
                object,
                boost: raw.boost.take().unwrap_or(1),
            }),
            "acquire": acquire => |lock, raw: Raw<'_>| ok(Verb::Acquire {
                lock,
                reason: raw.reason.take().unwrap_or(WaitReason::WrAlertByThreadId),
            }),
            "release": release => |lock, _: Raw<'_>| ok(Verb::Release(lock)),
            "read": read => |bytes, raw: Raw<'_>| transfer(false, bytes, raw),
            "write": write => |bytes, raw: Raw<'_>| transfer(true, bytes, raw),
            "flush": flush => |disk, _: Raw<'_>| ok(Verb::Flush(disk)),
            "fault": fault => |bytes, raw: Raw<'_>| Ok::<_, String>(Verb::Fault {
                bytes,
                disk: raw.disk.take().unwrap_or(0),
                file: raw.file.take().ok_or("a `fault` needs its `file`")?,
            }),
            "send": send => |flow, raw: Raw<'_>| ok(Verb::Send { flow, bytes: raw.bytes.take() }),
            "receive": receive => |flow, _: Raw<'_>| ok(Verb::Receive(flow)),
            "reply": reply => |flow, _: Raw<'_>| ok(Verb::Reply(flow)),
            "message": message => |message, _: Raw<'_>| truly("message", message, Verb::Message),
            "post": post => |process, _: Raw<'_>| ok(Verb::Post(process)),
            "resolution": resolution => |resolution, _: Raw<'_>| match resolution {
                Resolution::Some(resolution) => Ok(Verb::Resolution(Some(resolution))),
                Resolution::None(false) => Ok(Verb::Resolution(None)),
                Resolution::None(true) => Err(
                    "`resolution` is a duration such as \"0.5ms\", or false to take it back"
                        .to_owned(),
                ),
            },
            "background": background => |is, _: Raw<'_>| ok(Verb::Background(is)),
            "focus": focus => |process, _: Raw<'_>| ok(Verb::Focus(process)),
            "freeze": freeze => |process, _: Raw<'_>| ok(Verb::Freeze(process)),
            "thaw": thaw => |process, _: Raw<'_>| ok(Verb::Thaw(process)),
            "priority": priority => |priority, _: Raw<'_>| match priority {
                1..=31 => Ok(Verb::Priority(priority)),
                _ => Err(format!("a `priority` is 1 to 31, not {priority}")),
            },
            "mark": mark => |mark, _: Raw<'_>| ok(Verb::Mark(mark)),
            "yield": yields => |yields, _: Raw<'_>| truly("yield", yields, Verb::Yield),
            "repeat": repeat => |times, raw: Raw<'_>| Ok::<_, String>(Verb::Repeat {
                times: Some(times),
                stop: raw.stop.take(),
                steps: raw.steps.take().ok_or("a `repeat` needs its `steps`")?,
            }),
            "forever": forever => |steps, raw: Raw<'_>| ok(Verb::Repeat {
                times: None,
                stop: raw.stop.take(),
                steps,
            }),
            "exit": exit => |exit, _: Raw<'_>| truly("exit", exit, Verb::Exit),
        );
        let (name, verb) = match found.len() {
            1 => found.remove(0),
            0 => return Err("the step says nothing to do (run, sleep, wait, …)".to_owned()),
            _ => {
                let names: Vec<_> = found.iter().map(|(name, _)| format!("`{name}`")).collect();
                return Err(format!(
                    "a step does one thing; this one says {}",
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
            ("steps", raw.steps.is_some()),
            ("stop", raw.stop.is_some()),
        ];
        if let Some((left, _)) = left.iter().find(|(_, is)| *is) {
            return Err(format!("`{left}` does not go with `{name}`"));
        }
        Ok(Step {
            verb,
            frames: raw.frames.unwrap_or_default(),
            measure: raw.measure,
        })
    }
}

fn ok(verb: Verb) -> Result<Verb, String> {
    Ok(verb)
}

fn truly(name: &str, is: bool, verb: Verb) -> Result<Verb, String> {
    is.then_some(verb)
        .ok_or_else(|| format!("`{name} = false` says nothing: leave the step out"))
}

fn transfer(write: bool, bytes: Bytes, raw: &mut RawStep) -> Result<Verb, String> {
    Ok(Verb::Transfer {
        write,
        bytes,
        disk: raw.disk.take().unwrap_or(0),
        file: raw.file.take(),
    })
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
        assert!(said("in = ['a!b']").contains("nothing to do"));
        assert!(said("run = '1ms'\nsleep = '1ms'").contains("`run` and `sleep`"));
        assert!(said("run = '1ms'\ndisk = 1").contains("`disk` does not go with `run`"));
        assert!(said("read = '3 pages'").contains("found `3 pages`"));
        assert!(said("priority = 40").contains("1 to 31, not 40"));
    }
}
