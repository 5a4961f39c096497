//! Interrupts and deferred procedure calls.

use super::cursor::Cursor;

/// What ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InterruptKind {
    /// Deferred procedure call, hook 0x0F44.
    Dpc,
    /// DPC that may run in a thread, hook 0x0F42.
    ThreadedDpc,
    /// DPC of a timer, hook 0x0F45.
    TimerDpc,
    /// Timer of a device object, hook 0x0F46.
    IoTimer,
    /// Interrupt service routine, hook 0x0F43.
    Isr,
    /// Interrupt service routine of a message-signalled interrupt, hook 0x0F32.
    MessageIsr,
    /// Interrupt service routine that runs in a thread, hook 0x0F5F.
    PassiveIsr,
}

impl InterruptKind {
    /// The kind that an opcode of the PerfInfo class means.
    pub fn of_opcode(opcode: u8) -> Option<InterruptKind> {
        Some(match opcode {
            0x32 => InterruptKind::MessageIsr,
            0x42 => InterruptKind::ThreadedDpc,
            0x43 => InterruptKind::Isr,
            0x44 => InterruptKind::Dpc,
            0x45 => InterruptKind::TimerDpc,
            0x46 => InterruptKind::IoTimer,
            0x5F => InterruptKind::PassiveIsr,
            _ => return None,
        })
    }

    /// A service routine, not a deferred call.
    pub fn is_isr(self) -> bool {
        matches!(
            self,
            InterruptKind::Isr | InterruptKind::MessageIsr | InterruptKind::PassiveIsr
        )
    }
}

/// The events of [`InterruptKind`]: a routine has run, and the event's own time is when it ended.
/// Routines nest: another on the same CPU may have run inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// What ran.
    pub kind: InterruptKind,
    /// When it began, as raw time of the session's clock.
    pub initial_time: u64,
    /// Address of the routine.
    pub routine: u64,
    /// Service routines: 1 if the routine claimed the interrupt.
    pub return_value: Option<u32>,
    /// Service routines since version 2: the interrupt vector.
    pub vector: Option<u16>,
    /// Message-signalled interrupts: which message.
    pub message_number: Option<u32>,
}

impl Interrupt {
    /// Reads the payload of the PerfInfo event `opcode`; `None` if it is no interrupt's, or too
    /// short.
    #[inline]
    pub fn read(opcode: u8, payload: &[u8], version: u8, pointer_size: usize) -> Option<Self> {
        let kind = InterruptKind::of_opcode(opcode)?;
        let mut cursor = Cursor::new(payload, pointer_size);
        let mut interrupt = Interrupt {
            kind,
            initial_time: cursor.u64()?,
            routine: cursor.pointer()?,
            return_value: None,
            vector: None,
            message_number: None,
        };
        if !kind.is_isr() {
            return Some(interrupt);
        }
        if version < 2 {
            interrupt.return_value = Some(cursor.u32()?);
            return Some(interrupt);
        }
        // Microsoft's reference shows an 8-bit vector and 16 reserved bits; captured payloads
        // hold a 16-bit vector at an odd offset.
        interrupt.return_value = Some(cursor.u8()?.into());
        interrupt.vector = Some(cursor.u16()?);
        cursor.skip(1)?;
        if kind == InterruptKind::MessageIsr {
            interrupt.message_number = Some(cursor.u32()?);
        }
        Some(interrupt)
    }
}
