//! Kinds of events that several rooms distinguish.

/// Kind of an interrupt or DPC routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InterruptKind {
    /// Deferred procedure call, hook 0x0F44.
    Dpc,
    /// DPC that may run in a thread (threaded DPC), hook 0x0F42.
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
    /// Returns the kind for an opcode of the PerfInfo class.
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

    /// Returns true for an interrupt service routine, false for a deferred procedure call (DPC).
    pub fn is_isr(self) -> bool {
        matches!(
            self,
            InterruptKind::Isr | InterruptKind::MessageIsr | InterruptKind::PassiveIsr
        )
    }
}

/// Operation on a connection or datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NetworkAction {
    /// Data was sent.
    Send,
    /// Data was received.
    Receive,
    /// A local process opened a connection.
    Connect,
    /// A connection was closed.
    Disconnect,
    /// Data was retransmitted.
    Retransmit,
    /// A remote host opened a connection.
    Accept,
    /// A connection attempt was repeated.
    Reconnect,
    /// Received data was passed to the application.
    Copy,
}

impl NetworkAction {
    /// Returns the action of an opcode, and true if the opcode is for IPv6. An IPv6 opcode is 16 higher than
    /// the IPv4 opcode of the same action.
    pub fn of_opcode(opcode: u8) -> Option<(NetworkAction, bool)> {
        let is_v6 = opcode >= 26;
        let action = match if is_v6 { opcode - 16 } else { opcode } {
            10 => NetworkAction::Send,
            11 => NetworkAction::Receive,
            12 => NetworkAction::Connect,
            13 => NetworkAction::Disconnect,
            14 => NetworkAction::Retransmit,
            15 => NetworkAction::Accept,
            16 => NetworkAction::Reconnect,
            18 => NetworkAction::Copy,
            _ => return None,
        };
        Some((action, is_v6))
    }
}
