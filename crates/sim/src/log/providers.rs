//! Events of manifest providers.

use std::io::{Seek, Write};

use super::manifest::{self, ManifestEvent};
use super::payload::{Payload, Small};
use super::{Direction, EventKind, Log, Who};
use crate::time::Time;
use crate::windows::Windows;

impl<W: Write + Seek> Log<W> {
    /// Logs a focus change from one process to another (Win32k 26).
    pub(crate) fn focus(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        session: u32,
        old: u32,
        new: u32,
    ) {
        let mut payload = Small::new();
        payload.u32(session).u32(old).u32(new);
        let event = &manifest::FOCUSED_PROCESS_CHANGE;
        self.provider(event, cpu, time, by, payload.as_slice());
    }

    /// Logs that a process is frozen or thawed (Kernel-Process 11 and 12).
    pub(crate) fn freeze(&mut self, cpu: u16, time: Time, by: Who, process: u32, frozen: bool) {
        let event = if frozen {
            &manifest::PROCESS_FREEZE_START
        } else {
            &manifest::PROCESS_FREEZE_STOP
        };
        self.provider(event, cpu, time, by, &process.to_le_bytes());
    }

    /// Logs that a process requests a timer resolution in 100 ns (Kernel-Power 63). Windows 11 also
    /// logs whether the request is ignored.
    pub(crate) fn timer_request(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        application: &str,
        resolution: u32,
        ignored: bool,
    ) {
        let mut payload = Vec::new();
        payload
            .u32(resolution)
            .u32(by.process)
            .u16(application.encode_utf16().count() as u16)
            .utf16(application)
            // Service tag 0, because the request belongs to no service.
            .u32(0);
        if self.computer.windows >= Windows::Eleven23H2 {
            payload.u32(ignored.into());
            self.provider(&manifest::TIMER_REQUEST_2, cpu, time, by, &payload);
        } else {
            self.provider(&manifest::TIMER_REQUEST, cpu, time, by, &payload);
        }
    }

    /// Logs the new timer resolution in 100 ns (Kernel-Power 95).
    pub(crate) fn timer_resolution(&mut self, cpu: u16, time: Time, by: Who, resolution: u32) {
        let event = &manifest::TIMER_RESOLUTION;
        self.provider(event, cpu, time, by, &resolution.to_le_bytes());
    }

    /// Logs that the machine enters sleep (Kernel-Power 42). `state` is 4 for S3 and 5 for S4.
    pub(crate) fn sleep(&mut self, cpu: u16, time: Time, by: Who, state: u32) {
        let mut payload = Small::new();
        payload.u32(state).u32(state);
        self.provider(&manifest::PRE_SLEEP, cpu, time, by, payload.as_slice());
    }

    /// Logs that the machine has resumed from sleep (Kernel-Power 107). `state` is the sleep state from which
    /// the machine resumed.
    pub(crate) fn resume(&mut self, cpu: u16, time: Time, by: Who, state: u32) {
        let working = 1;
        let mut payload = Small::new();
        payload.u32(working).u32(working).u32(state);
        self.provider(&manifest::POST_SLEEP, cpu, time, by, payload.as_slice());
    }

    /// Logs a complete Ethernet frame that was sent or received on the interface with the given
    /// index (NDIS-PacketCapture 1001).
    pub(crate) fn packet(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        interface: u32,
        direction: Direction,
        frame: &[u8],
    ) {
        if !self.records(EventKind::Packet) {
            return;
        }
        let event = match direction {
            Direction::Send => &manifest::PACKET_SENT,
            Direction::Receive => &manifest::PACKET_RECEIVED,
        };
        let mut payload = std::mem::take(&mut self.packet);
        payload.clear();
        payload
            .u32(interface)
            .u32(interface)
            .u32(frame.len() as u32)
            .bytes(frame)
            // Flow entry and offload information: 0, because no flow is offloaded.
            .u64(0)
            .u64(0);
        self.provider(event, cpu, time, by, &payload);
        self.packet = payload;
    }

    /// Logs that .NET stops the threads of a process for the collection with this number and generation, and
    /// that the collection begins (DotNETRuntime 9 and 1).
    pub(crate) fn collection_begins(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        number: u32,
        generation: u32,
    ) {
        let instance = 0;
        let (for_collection, small_objects, blocking) = (1, 0, 0);
        let mut payload = Small::new();
        payload.u32(for_collection).u32(number).u16(instance);
        self.provider(&manifest::SUSPEND_BEGIN, cpu, time, by, payload.as_slice());
        let mut payload = Vec::new();
        payload
            .u32(number)
            .u32(generation)
            .u32(small_objects)
            .u32(blocking)
            .u16(instance);
        self.provider(&manifest::COLLECTION_BEGIN, cpu, time, by, &payload);
    }

    /// Logs that a collection ended, and that the threads of the process run again (DotNETRuntime 2 and 3).
    pub(crate) fn collection_ends(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        number: u32,
        generation: u32,
    ) {
        let instance = 0_u16;
        let mut payload = Small::new();
        payload.u32(number).u32(generation).u16(instance);
        self.provider(&manifest::COLLECTION_END, cpu, time, by, payload.as_slice());
        let event = &manifest::RESTART_END;
        self.provider(event, cpu, time, by, &instance.to_le_bytes());
    }

    /// Logs that .NET changes the number of threads in a process's pool (DotNETRuntime 55).
    pub(crate) fn pool_threads(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        threads: u32,
        starved: bool,
    ) {
        let (throughput, instance) = (0.0_f64, 0);
        let (climbing_move, starvation) = (3, 6);
        let reason = if starved { starvation } else { climbing_move };
        let mut payload = Vec::new();
        payload
            .u64(throughput.to_bits())
            .u32(threads)
            .u32(reason)
            .u16(instance);
        self.provider(&manifest::POOL_THREADS, cpu, time, by, &payload);
    }

    /// Logs that a key was pressed (UIforETW's Multi-Input 404).
    pub(crate) fn key_down(&mut self, cpu: u16, time: Time, by: Who, key: u32, name: &str) {
        let mut payload = Vec::new();
        payload.u32(key).narrow(name).u32(1).u32(0);
        self.provider(&manifest::KEY_DOWN, cpu, time, by, &payload);
    }

    /// Logs the descriptions of the manifest events that are in the trace.
    pub(super) fn describe(&mut self, time: Time) {
        let timer_request = match self.computer.windows {
            Windows::Seven | Windows::Ten => &manifest::TIMER_REQUEST,
            _ => &manifest::TIMER_REQUEST_2,
        };
        let events: [&ManifestEvent; 14] = [
            &manifest::FOCUSED_PROCESS_CHANGE,
            &manifest::PROCESS_FREEZE_START,
            &manifest::PROCESS_FREEZE_STOP,
            timer_request,
            &manifest::TIMER_RESOLUTION,
            &manifest::PRE_SLEEP,
            &manifest::POST_SLEEP,
            &manifest::PACKET_SENT,
            &manifest::SUSPEND_BEGIN,
            &manifest::COLLECTION_BEGIN,
            &manifest::COLLECTION_END,
            &manifest::RESTART_END,
            &manifest::POOL_THREADS,
            &manifest::KEY_DOWN,
        ];
        for event in events {
            if self.counts[event.kind as usize] > 0 {
                let description = event.description();
                self.injected(
                    EventKind::EventMetadata,
                    &description,
                    0,
                    time,
                    Who::NO_THREAD,
                );
            }
        }
    }
}
