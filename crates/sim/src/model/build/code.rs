//! Resolution of frames (`module!function`) to addresses while a model is built.

use super::Builder;
use crate::model::{Body, BodyId, RoutineId, Site, Source};
use crate::scenario::{Fault, Frames, Routine};

impl Builder<'_> {
    /// Returns the index of a body, which has one stack for each part of the work. `owner` is the
    /// id of the process that executes the code, or `None` for kernel code.
    pub(super) fn body(&mut self, owner: Option<u32>, parts: Vec<Frames>) -> Result<BodyId, Fault> {
        let key = (owner, parts);
        if let Some(body) = self.by_frames.get(&key) {
            return Ok(*body);
        }
        let mut sites = Vec::new();
        for Frames(frames) in &key.1 {
            let addresses: Result<Vec<u64>, _> = frames
                .iter()
                .map(|frame| self.modules.frame(owner, frame))
                .collect();
            let addresses = addresses.map_err(|e| Fault::in_field("in", e.to_string()))?;
            sites.push(Site {
                address: addresses.first().copied().unwrap_or(0),
                stack: self.modules.stack(&addresses),
            });
        }
        self.bodies.push(Body { parts: sites });
        let innermost = |frames: &Frames| frames.0.first().cloned().unwrap_or_default();
        self.labels
            .parts
            .push(key.1.iter().map(innermost).collect());
        self.by_frames.insert(key, self.bodies.len() - 1);
        Ok(self.bodies.len() - 1)
    }

    /// Returns the index of a kernel routine, which is added if it is new.
    pub(super) fn routine(&mut self, name: &str) -> Result<RoutineId, Fault> {
        if let Some(known) = self.labels.routines.iter().position(|other| other == name) {
            return Ok(known);
        }
        let address = self.modules.function(None, name);
        self.routines
            .push(address.map_err(|e| Fault::in_field("in", e.to_string()))?);
        self.labels.routines.push(name.to_owned());
        Ok(self.routines.len() - 1)
    }

    /// Returns a routine of the scenario with its stack and cost. The kernel function `caller` calls the
    /// outermost frame of this stack.
    pub(super) fn source(&mut self, routine: &Routine, caller: &str) -> Result<Source, Fault> {
        let outermost = routine.frames.0.last();
        let name =
            outermost.ok_or_else(|| Fault::in_field("in", "a routine needs its frames in `in`"))?;
        let routine_id = self.routine(name)?;
        let stack = routine.frames.0.iter().cloned();
        let stack = stack.chain([format!("ntoskrnl.exe!{caller}")]).collect();
        Ok(Source {
            routine: routine_id,
            body: self.body(None, vec![Frames(stack)])?,
            cost: routine.cost,
        })
    }

    pub(super) fn isr(&mut self, routine: &Routine) -> Result<Source, Fault> {
        self.source(routine, "KiInterruptDispatch")
    }

    pub(super) fn dpc(&mut self, routine: &Routine) -> Result<Source, Fault> {
        self.source(routine, "KiExecuteAllDpcs")
    }
}
