//! Construction of a model's processors, devices, disks, network adapters and flows.

use std::collections::VecDeque;
use std::rc::Rc;

use rules::flow::Flow as Tuple;
use rules::rss::four_tuple_hash;

use super::{Builder, SYSTEM, frames, position, unknown};
use crate::model::device::{Device, Pace};
use crate::model::disk::Disk;
use crate::model::interrupt::MAX_PARTS;
use crate::model::network::{Flow, Layer, Nic, NicQueue, peer_address};
use crate::model::processor::Processor;
use crate::model::program::{Instruction, Op, Program};
use crate::quantity::Nanoseconds;
use crate::random::Random;
use crate::scenario::{Amount, Fault, Frames, WaitReason};

impl Builder<'_> {
    pub(super) fn processors(&mut self) -> Result<Vec<Processor>, Fault> {
        let threaded = self.document.devices.iter().any(|device| device.threaded);
        let mut cpus = Vec::new();
        for c in 0..self.topology.processors().len() {
            let mut cpu = Processor::new();
            if threaded {
                cpu.dpc_object = self.object(1, 0);
                self.add_dpc_thread(c, cpu.dpc_object)?;
            }
            cpus.push(cpu);
        }
        Ok(cpus)
    }

    /// Adds the DPC thread of a processor, which runs threaded DPCs at the highest priority.
    pub(super) fn add_dpc_thread(&mut self, c: usize, object: usize) -> Result<(), Fault> {
        let home = frames(&[
            "ntoskrnl.exe!KiExecuteDpc",
            "ntoskrnl.exe!PspSystemThreadStartup",
        ]);
        let body = self.body(None, vec![home])?;
        let ops = [
            Op::Loop {
                times: None,
                stop: None,
                end: 4,
            },
            Op::Wait {
                object,
                timeout: None,
                reason: WaitReason::Executive,
            },
            Op::ThreadedDpc(c),
            Op::Again(1),
        ];
        let program = Program(
            ops.into_iter()
                .map(|op| Instruction {
                    op,
                    body: None,
                    measure: None,
                })
                .collect(),
        );
        let id = self.new_id();
        let t = self.add_thread(id, SYSTEM, 31, body, Rc::new(program), "DPC thread");
        let thread = &mut self.threads[t];
        thread.affinity = [c].into_iter().collect();
        thread.ideal = c;
        thread.last_cpu = c;
        self.starts.push((t, Amount::Fixed(Nanoseconds(0))));
        Ok(())
    }

    pub(super) fn disks(&mut self) -> Result<Vec<Disk>, Fault> {
        let mut disks = Vec::new();
        for (n, disk) in self.document.disks.iter().enumerate() {
            let at = |field| move |fault: Fault| fault.inside(field).member("disk", n);
            disks.push(Disk {
                number: disk.number,
                queue_depth: disk.queue_depth as usize,
                service: disk.service,
                bytes_per_second: disk.bytes_per_second.0,
                isr: self.isr(&disk.isr).map_err(at("isr"))?,
                dpc: self.dpc(&disk.dpc).map_err(at("dpc"))?,
                cpu: disk.cpu.into(),
                random: Random::new(self.seed, &format!("disk {}", disk.number)),
                waiting: VecDeque::new(),
                served: Vec::new(),
                link_free: 0,
                position: 1 << 30,
                transfers: 0,
            });
        }
        Ok(disks)
    }

    pub(super) fn nics(&mut self) -> Result<Vec<Nic>, Fault> {
        let mut nics = Vec::new();
        for (n, nic) in self.document.nics.iter().enumerate() {
            let at = |fault: Fault| fault.member("nic", n);
            if nic.layers.is_empty() || nic.layers.len() > MAX_PARTS {
                let message = format!(
                    "adapter `{}`: its DPC has 1 to {MAX_PARTS} `layer`s, not {}",
                    nic.name,
                    nic.layers.len()
                );
                return Err(at(Fault::in_field("layer", message)));
            }
            for (l, layer) in nic.layers.iter().enumerate() {
                if layer.frames.0.is_empty() {
                    let fault = Fault::in_field("in", "a layer needs its frames in `in`");
                    return Err(at(fault.member("layer", l)));
                }
            }
            let cpus = nic.rss.processors(&self.topology).map_err(|e| {
                at(Fault::in_field(
                    "rss",
                    format!("adapter `{}`: {e}", nic.name),
                ))
            })?;
            let stacks = nic.layers.iter().map(|layer| {
                let stack = layer.frames.0.iter().cloned();
                Frames(
                    stack
                        .chain(["ntoskrnl.exe!KiExecuteAllDpcs".into()])
                        .collect(),
                )
            });
            let in_layer = |fault: Fault| at(fault.inside("layer"));
            let body = self.body(None, stacks.collect()).map_err(in_layer)?;
            let first = nic.layers[0].frames.0.last().cloned().unwrap_or_default();
            nics.push(Nic {
                isr: (self.isr(&nic.isr)).map_err(|fault| at(fault.inside("isr")))?,
                dpc_routine: self.routine(&first).map_err(in_layer)?,
                dpc_body: body,
                layers: (nic.layers.iter())
                    .map(|layer| Layer {
                        per_dpc: layer.per_dpc,
                        per_packet: layer.per_packet,
                        per_kib: layer.per_kib,
                    })
                    .collect(),
                moderation: self.base.ticks(nic.moderation.0),
                coalesce: nic.coalesce,
                queues: cpus
                    .into_iter()
                    .map(|cpu| NicQueue {
                        cpu,
                        waiting: VecDeque::new(),
                        in_hand: Vec::new(),
                        busy: false,
                        may_interrupt: 0,
                        moderated: false,
                    })
                    .collect(),
                random: Random::new(self.seed, &format!("nic {}", nic.name)),
            });
        }
        Ok(nics)
    }

    pub(super) fn flows(&mut self, nics: &[Nic]) -> Result<Vec<Flow>, Fault> {
        let mut flows = Vec::new();
        for (at, flow) in self.document.flows.iter().enumerate() {
            let nic = position(&self.document.nics, &flow.nic, |n| &n.name)
                .ok_or_else(|| unknown("adapter", &flow.nic))?;
            let wrong = |message: String| Fault::in_field("nic", message).member("flow", at);
            let table = self.document.nics[nic]
                .rss
                .indirection_table(&self.topology)
                .map_err(|e| wrong(e.to_string()))?;
            let mut queues = Vec::new();
            for peer in 0..flow.peers {
                let from = peer_address(flow.remote, peer);
                let tuple = Tuple::new(from, flow.local).map_err(|e| wrong(e.to_string()))?;
                let cpu = table.processor_for(four_tuple_hash(&tuple));
                let queue = nics[nic].queues.iter().position(|queue| queue.cpu == cpu);
                queues.push(queue.unwrap_or(0));
            }
            let process = match &flow.process {
                Some(name) => self.process(name)?,
                None => SYSTEM,
            };
            let pace = self.pace(flow.every, flow.count, flow.from, flow.to);
            flows.push(Flow {
                nic,
                process,
                tcp: flow.tcp,
                local: flow.local,
                remote: flow.remote,
                queues,
                bytes: flow.bytes.0 as u32,
                packets: flow.packets,
                pace,
                window: flow.window.unwrap_or(0),
                echo: flow.echo,
                delay: flow.delay,
                think: flow.think,
                loss: flow.loss.map_or(0.0, |loss| loss.get()),
                dscp: flow.dscp,
                bleached: flow.bleached,
                send_cost: flow.send_cost,
                arrived: self.flow_objects[at],
                random: Random::new(self.seed, &format!("flow {}", flow.name)),
                sequence: 0,
            });
            self.labels.flows.push(flow.name.clone());
        }
        Ok(flows)
    }

    pub(super) fn devices(&mut self) -> Result<Vec<Device>, Fault> {
        let mut devices = Vec::new();
        for (at, device) in self.document.devices.iter().enumerate() {
            let in_device =
                |field: &'static str| move |fault: Fault| fault.inside(field).member("device", at);
            let Some(pace) = self.pace(device.every, device.count, device.from, device.to) else {
                continue;
            };
            let isr = device.isr.as_ref().map(|isr| self.isr(isr)).transpose();
            let isr = isr.map_err(in_device("isr"))?;
            let dpc = device.dpc.as_ref().map(|dpc| self.dpc(dpc)).transpose();
            let dpc = dpc.map_err(in_device("dpc"))?;
            let sets = match &device.sets {
                Some(name) => Some(self.named(name, false, |object| object.set = true)?),
                None => None,
            };
            let random = |what: &str| Random::new(self.seed, &format!("{what} {}", device.name));
            devices.push(Device {
                pace,
                cpus: device.cpus.iter().map(|cpu| usize::from(*cpu)).collect(),
                line: device.line,
                vector: 0xB0 + (at % 0x20) as u16,
                isr,
                dpc,
                importance: device.importance,
                target: device.target.map(usize::from),
                threaded: device.threaded,
                timer: device.timer,
                sets,
                when: random("device"),
                isr_random: random("isr"),
                dpc_random: random("dpc"),
                turn: 0,
            });
        }
        Ok(devices)
    }

    pub(super) fn pace(
        &self,
        every: Option<Amount>,
        count: Option<u64>,
        from: Nanoseconds,
        to: Option<Nanoseconds>,
    ) -> Option<Pace> {
        let every = match count {
            Some(_) => Amount::Fixed(Nanoseconds(0)),
            None => every?,
        };
        Some(Pace {
            from: self.base.ticks(from.0),
            to: self.base.ticks(to.unwrap_or(self.document.duration).0),
            every,
            count,
            done: 0,
        })
    }
}
