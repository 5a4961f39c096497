//! Interrupts and deferred procedure calls.

use rules::kinds::InterruptKind;

use super::cursor::Cursor;

/// DPC, ISR and similar PerfInfo events. Each event means that a routine of an [`InterruptKind`] ran and
/// ended. The event's time is the end of the routine. Routines can nest: another routine may have interrupted
/// this routine on the same CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Kind of the routine.
    pub kind: InterruptKind,
    /// Raw time of the routine's start, in ticks of the session's clock.
    pub initial_time: u64,
    /// Address of the routine.
    pub routine: u64,
    /// Return value of the routine. It is 1 if the routine claimed the interrupt. Only interrupt service
    /// routines have this field.
    pub return_value: Option<u32>,
    /// Interrupt vector. Only interrupt service routines have this field, since version 2.
    pub vector: Option<u16>,
    /// Message number. Only message-signalled interrupts have this field.
    pub message_number: Option<u32>,
}

impl Interrupt {
    /// Reads the payload of the PerfInfo event `opcode`. Returns `None` if the opcode is not the opcode of an
    /// [`InterruptKind`] or if the payload is too short.
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
        // In Microsoft's reference, the vector has 8 bits, and 16 reserved bits follow. In captured payloads,
        // the vector has 16 bits and is at an odd offset.
        interrupt.return_value = Some(cursor.u8()?.into());
        interrupt.vector = Some(cursor.u16()?);
        cursor.skip(1)?;
        if kind == InterruptKind::MessageIsr {
            interrupt.message_number = Some(cursor.u32()?);
        }
        Some(interrupt)
    }
}
