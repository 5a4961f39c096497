//! Events of manifest providers.

use std::io::{Seek, Write};

use etl::{Descriptor, Guid};

use super::payload::Payload;
use super::{Direction, EventKind, Log, Who};
use crate::time::Time;
use crate::windows::Windows;

const WIN32K: Guid = Guid::new(
    0x8C41_6C79,
    0xD49B,
    0x4F01,
    [0xA4, 0x67, 0xE5, 0x6D, 0x3A, 0xA8, 0x23, 0x4C],
);
const KERNEL_PROCESS: Guid = Guid::new(
    0x22FB_2CD6,
    0x0E7B,
    0x422B,
    [0xA0, 0xC7, 0x2F, 0xAD, 0x1F, 0xD0, 0xE7, 0x16],
);
const KERNEL_POWER: Guid = Guid::new(
    0x331C_3B3A,
    0x2005,
    0x44C2,
    [0xAC, 0x5E, 0x77, 0x22, 0x0C, 0x37, 0xD6, 0xB4],
);
const PACKET_CAPTURE: Guid = Guid::new(
    0x2ED6_006E,
    0x4729,
    0x4609,
    [0xB4, 0x23, 0x3E, 0xE7, 0xBC, 0xD6, 0x78, 0xEF],
);
const INPUT: Guid = Guid::new(
    0x70E2_503B,
    0xC6F3,
    0x4780,
    [0xB3, 0x23, 0xBD, 0x8E, 0xD0, 0xC6, 0x1B, 0xF8],
);

/// A descriptor of level 4, informational. Tasks and keywords that public sources do not give are
/// zero.
const fn descriptor(id: u16, version: u8, opcode: u8, keyword: u64) -> Descriptor {
    Descriptor {
        id,
        version,
        channel: 0,
        level: 4,
        opcode,
        task: 0,
        keyword,
    }
}

impl<W: Write + Seek> Log<W> {
    /// Logs that the focus goes from one process to another (Win32k 26).
    pub(crate) fn focus(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        session: u32,
        old: u32,
        new: u32,
    ) {
        let mut payload = Vec::with_capacity(12);
        payload.u32(session).u32(old).u32(new);
        let user_activity = 0x2_0000;
        let event = descriptor(26, 0, 0, user_activity);
        self.provider(EventKind::Focus, WIN32K, event, cpu, time, by, &payload);
    }

    /// Logs that a process is frozen or thawed (Kernel-Process 11 and 12).
    pub(crate) fn freeze(&mut self, cpu: u16, time: Time, by: Who, process: u32, frozen: bool) {
        let mut payload = Vec::with_capacity(4);
        payload.u32(process);
        // Version 1 adds when the process was created; since which build is not known.
        let (id, opcode) = if frozen { (11, 1) } else { (12, 2) };
        let process_freeze = 0x200;
        let event = descriptor(id, 0, opcode, process_freeze);
        self.provider(
            EventKind::Freeze,
            KERNEL_PROCESS,
            event,
            cpu,
            time,
            by,
            &payload,
        );
    }

    /// Logs that a process asks for a timer resolution in 100 ns (Kernel-Power 63). Windows 11
    /// also says whether it is ignored.
    pub(crate) fn timer_request(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        application: &str,
        resolution: u32,
        ignored: bool,
    ) {
        let says_ignored = self.computer.windows >= Windows::Eleven23H2;
        let mut payload = Vec::new();
        payload
            .u32(resolution)
            .u32(by.process)
            .u16(application.encode_utf16().count() as u16)
            .utf16(application)
            // It works for no service.
            .u32(0);
        if says_ignored {
            payload.u32(ignored.into());
        }
        let event = descriptor(63, if says_ignored { 2 } else { 1 }, 0, 0);
        self.provider(
            EventKind::TimerRequest,
            KERNEL_POWER,
            event,
            cpu,
            time,
            by,
            &payload,
        );
    }

    /// Logs the timer resolution from now on, in 100 ns (Kernel-Power 95).
    pub(crate) fn timer_resolution(&mut self, cpu: u16, time: Time, by: Who, resolution: u32) {
        let mut payload = Vec::with_capacity(4);
        payload.u32(resolution);
        let event = descriptor(95, 0, 0, 0);
        self.provider(
            EventKind::TimerResolution,
            KERNEL_POWER,
            event,
            cpu,
            time,
            by,
            &payload,
        );
    }

    /// Logs that the machine goes to sleep (Kernel-Power 42); `state` is 4 for S3, 5 for S4.
    pub(crate) fn sleep(&mut self, cpu: u16, time: Time, by: Who, state: u32) {
        let mut payload = Vec::with_capacity(8);
        payload.u32(state).u32(state);
        self.provider(
            EventKind::Sleep,
            KERNEL_POWER,
            descriptor(42, 0, 0, 0),
            cpu,
            time,
            by,
            &payload,
        );
    }

    /// Logs that the machine has resumed from the state (Kernel-Power 107).
    pub(crate) fn resume(&mut self, cpu: u16, time: Time, by: Who, state: u32) {
        let working = 1;
        let mut payload = Vec::with_capacity(12);
        payload.u32(working).u32(working).u32(state);
        self.provider(
            EventKind::Sleep,
            KERNEL_POWER,
            descriptor(107, 0, 0, 0),
            cpu,
            time,
            by,
            &payload,
        );
    }

    /// Logs an Ethernet frame, whole (NDIS-PacketCapture 1001), of the interface of that index.
    pub(crate) fn packet(
        &mut self,
        cpu: u16,
        time: Time,
        by: Who,
        interface: u32,
        direction: Direction,
        frame: &[u8],
    ) {
        const ETHERNET: u64 = 0x1;
        const START: u64 = 0x4000_0000;
        const END: u64 = 0x8000_0000;
        const SEND: u64 = 0x1_0000_0000;
        const RECEIVE: u64 = 0x2_0000_0000;
        if !self.records(EventKind::Packet) {
            return;
        }
        let way = match direction {
            Direction::Send => SEND,
            Direction::Receive => RECEIVE,
        };
        let mut payload = std::mem::take(&mut self.packet);
        payload.clear();
        payload
            .u32(interface)
            .u32(interface)
            .u32(frame.len() as u32)
            .bytes(frame);
        // No flow is offloaded. Which builds began to say so is not known.
        payload.u64(0).u64(0);
        let event = descriptor(1001, 0, 0, ETHERNET | START | END | way);
        self.provider(
            EventKind::Packet,
            PACKET_CAPTURE,
            event,
            cpu,
            time,
            by,
            &payload,
        );
        self.packet = payload;
    }

    /// Logs that a key was pressed (UIforETW's Multi-Input 404).
    pub(crate) fn key_down(&mut self, cpu: u16, time: Time, by: Who, key: u32, name: &str) {
        let mut payload = Vec::new();
        payload.u32(key).narrow(name).u32(1).u32(0);
        let event = descriptor(404, 0, 0, 0);
        self.provider(EventKind::KeyDown, INPUT, event, cpu, time, by, &payload);
    }
}
