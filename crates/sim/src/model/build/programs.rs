//! Compilation of threads' programs: steps become a flat list, and names become indices.

use std::collections::VecDeque;

use super::{Builder, NamedObject, position, unknown};
use crate::log::DiskAction;
use crate::model::ProcessId;
use crate::model::program::{Instruction, Object, Op, Program};
use crate::scenario::{Fault, Frames, Name, Step, Verb, WaitReason};

impl Builder<'_> {
    /// Compiles the steps of a program. `field` is the name of the field in the scenario, for error messages.
    pub(super) fn compile(
        &mut self,
        process: ProcessId,
        home: &Frames,
        (field, steps): (&str, &[Step]),
        in_timed_loop: bool,
        program: &mut Program,
    ) -> Result<(), Fault> {
        for (n, step) in steps.iter().enumerate() {
            self.compile_step(process, home, step, in_timed_loop, program)
                .map_err(|fault| fault.member(field, n))?;
        }
        Ok(())
    }

    pub(super) fn compile_step(
        &mut self,
        process: ProcessId,
        home: &Frames,
        step: &Step,
        in_timed_loop: bool,
        program: &mut Program,
    ) -> Result<(), Fault> {
        let body = if step.frames.0.is_empty() {
            None
        } else {
            let stack = step.frames.0.iter().chain(&home.0).cloned().collect();
            Some(self.body(self.owner(process), vec![Frames(stack)])?)
        };
        let measure = step.measure.as_ref().map(|name| {
            let known = self.measures.iter().position(|other| other == name);
            known.unwrap_or_else(|| {
                self.measures.push(name.clone());
                self.measures.len() - 1
            })
        });
        if let Verb::Repeat { times, stop, steps } = &step.verb {
            if stop.is_some() && in_timed_loop {
                let message = "a loop with a `stop` cannot be inside another one";
                return Err(Fault::of("stop", message));
            }
            let bare = |op| Instruction {
                op,
                body: None,
                measure: None,
            };
            let start = program.0.len();
            program.0.push(bare(Op::Exit));
            let timed = in_timed_loop || stop.is_some();
            let field = if times.is_some() { "steps" } else { "forever" };
            self.compile(process, home, (field, steps), timed, program)?;
            program.0.push(bare(Op::Again(start + 1)));
            program.0[start].op = Op::Loop {
                times: *times,
                stop: stop.map(|stop| self.base.ticks(stop.0)),
                end: program.0.len(),
            };
            return Ok(());
        }
        let ops = self.ops(process, &step.verb)?.into_iter();
        program
            .0
            .extend(ops.map(|op| Instruction { op, body, measure }));
        Ok(())
    }

    /// Returns the operations of a verb; none for a loop, which `compile_step` compiles.
    fn ops(&mut self, process: ProcessId, verb: &Verb) -> Result<Vec<Op>, Fault> {
        let op = match verb {
            Verb::Run(amount) => Op::Run(*amount),
            Verb::Sleep(amount) => Op::Sleep(*amount),
            Verb::Until(moment) => Op::Until(self.base.ticks(moment.0)),
            Verb::Wait {
                object,
                timeout,
                reason,
            } => Op::Wait {
                object: self.named(object, false, |object| object.awaited = true)?,
                timeout: *timeout,
                reason: *reason,
            },
            Verb::Set { object, boost } => Op::Set {
                object: self.named(object, false, |object| object.set = true)?,
                boost: *boost,
            },
            Verb::Acquire { lock, reason } => Op::Acquire {
                lock: self.named(lock, true, |lock| lock.awaited = true)?,
                reason: *reason,
            },
            Verb::Release(lock) => Op::Release(self.named(lock, true, |lock| lock.set = true)?),
            Verb::Transfer {
                write,
                bytes,
                disk,
                file,
            } => Op::Transfer {
                action: if *write {
                    DiskAction::Write
                } else {
                    DiskAction::Read
                },
                bytes: bytes.0 as u32,
                disk: self.disk(*disk)?,
                file: file.as_ref().map_or(0, |file| self.file(file)),
            },
            Verb::Flush(disk) => Op::Transfer {
                action: DiskAction::Flush,
                bytes: 0,
                disk: self.disk(*disk)?,
                file: 0,
            },
            Verb::Fault { bytes, disk, file } => {
                let disk = self.disk(*disk)?;
                let file = self.file(file);
                let bytes = bytes.0 as u32;
                return Ok(vec![
                    Op::Fault { bytes, disk, file },
                    Op::FaultDone { bytes, file },
                ]);
            }
            Verb::Send { flow, bytes } => {
                let flow = self.flow(flow)?;
                let default = self.document.flows[flow].bytes.0;
                let bytes = bytes.map_or(default, |bytes| bytes.0) as u32;
                return Ok(vec![Op::Send { flow }, Op::Sent { flow, bytes }]);
            }
            Verb::Receive(flow) => Op::Wait {
                object: self.flow_objects[self.flow(flow)?],
                timeout: None,
                reason: WaitReason::WrQueue,
            },
            Verb::Reply(flow) => Op::Reply(self.flow(flow)?),
            Verb::Message => Op::Wait {
                object: self.processes[process].messages,
                timeout: None,
                reason: WaitReason::WrUserRequest,
            },
            Verb::Post(other) => Op::Set {
                object: self.processes[self.process(other)?].messages,
                boost: 2,
            },
            Verb::Resolution(resolution) => {
                Op::Resolution(resolution.map(|ns| u32::try_from(ns.0 / 100).unwrap_or(u32::MAX)))
            }
            Verb::Background(is) => Op::Background(*is),
            Verb::Focus(other) => Op::Focus(self.process(other)?),
            Verb::Freeze(other) => Op::Freeze(self.process(other)?),
            Verb::Thaw(other) => Op::Thaw(self.process(other)?),
            Verb::Priority(priority) => Op::Priority(*priority),
            Verb::Collection(generation) => Op::Collection(*generation),
            Verb::PoolThreads { threads, starved } => Op::PoolThreads {
                threads: *threads,
                starved: *starved,
            },
            Verb::Mark(text) => Op::Mark(text.clone()),
            Verb::Yield => Op::Yield,
            Verb::Exit => Op::Exit,
            Verb::Repeat { .. } => return Ok(Vec::new()),
        };
        Ok(vec![op])
    }

    pub(super) fn object(&mut self, limit: u32, count: u32) -> usize {
        self.objects.push(Object {
            count,
            limit,
            waiters: VecDeque::new(),
        });
        self.objects.len() - 1
    }

    pub(super) fn named(
        &mut self,
        name: &Name,
        is_lock: bool,
        used: impl FnOnce(&mut NamedObject),
    ) -> Result<usize, Fault> {
        if !self.by_name.contains_key(name.get_ref()) {
            let index = self.object(1, u32::from(is_lock));
            let object = NamedObject {
                index,
                is_lock,
                set: false,
                awaited: false,
                span: name.span(),
            };
            self.by_name.insert(name.get_ref().clone(), object);
        }
        match self.by_name.get_mut(name.get_ref()) {
            Some(object) if object.is_lock == is_lock => {
                used(object);
                Ok(object.index)
            }
            _ => Err(Fault::new(
                name.span(),
                format!(
                    "`{}` is used both as a lock and as another object",
                    name.get_ref()
                ),
            )),
        }
    }

    pub(super) fn process(&self, name: &Name) -> Result<ProcessId, Fault> {
        let process = self
            .processes
            .iter()
            .position(|p| p.name == *name.get_ref());
        process.ok_or_else(|| unknown("process", name))
    }

    pub(super) fn flow(&self, name: &Name) -> Result<usize, Fault> {
        position(&self.document.flows, name, |f| &f.name).ok_or_else(|| unknown("flow", name))
    }

    pub(super) fn disk(&self, number: u32) -> Result<usize, Fault> {
        let disk = self.document.disks.iter().position(|d| d.number == number);
        disk.ok_or_else(|| {
            Fault::of(
                "disk",
                format!("there is no disk {number}; add a `[[disk]]`"),
            )
        })
    }

    /// Returns the index of a file's name. Indices start at 1, because 0 means no file.
    pub(super) fn file(&mut self, name: &str) -> u32 {
        let known = self.labels.files.iter().position(|file| file == name);
        let at = known.unwrap_or_else(|| {
            self.labels.files.push(name.to_owned());
            self.labels.files.len() - 1
        });
        at as u32 + 1
    }
}
