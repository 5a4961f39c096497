//! Thread quanta: the registry value `Win32PrioritySeparation`, and conversion of quantum units to time
//! and CPU cycles.
//!
//! The source for the bits of the value is Microsoft's page on `Win32PrioritySeparation`
//! (<https://technet.microsoft.com/library/Cc976120>, of Windows 2000). The sources for the lengths of
//! quanta are *Windows Internals* (7th edition, part 1, chapter 4) and readings in a debugger
//! (PC-Tuning, docs/research.md, section 5). Microsoft's documentation does not state the lengths, and
//! the readings name no build.

use serde::{Deserialize, Serialize};

/// Quantum units per second. A clock tick is 3 units, nominally 1/64 s (15.625 ms).
const UNITS_PER_SECOND: u128 = 3 * 64;

/// Quantum of threads in the Idle priority class, in units. `Win32PrioritySeparation` does not change it.
pub const IDLE_CLASS_UNITS: u8 = 6;

/// First build on which the measured time slices of threads were shorter than the published table states.
pub const TABLE_DOUBTED_FROM: u32 = 26_100;

/// Registry value `HKLM\SYSTEM\CurrentControlSet\Control\PriorityControl\Win32PrioritySeparation`.
///
/// Windows reads the low six bits, which are three fields of two bits, and ignores the other bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Win32PrioritySeparation(pub u32);

impl Default for Win32PrioritySeparation {
    /// Returns 2, the value after installation.
    fn default() -> Win32PrioritySeparation {
        Win32PrioritySeparation(2)
    }
}

/// Decoded [`Win32PrioritySeparation`]. Quanta are in quantum units, 3 per clock tick.
///
/// The bits are documented. The lengths are from *Windows Internals* and from readings in a
/// debugger. On builds from 26100 on, the measured time slices of threads of equal priority were shorter (a
/// ninth of a tick, 1.74 ms). On these builds, Windows still charges CPU cycles to the quantum in
/// the table. No other details are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantum {
    /// True for long quanta (default of servers), false for short quanta (default of clients).
    pub long: bool,
    /// True if the foreground process gets longer quanta, depending on `separation`.
    pub variable: bool,
    /// Kernel variable `PsPrioritySeparation`, 0 to 2. It selects the quantum of the foreground process.
    /// It is also the priority boost of the process's threads after a wait, even if quanta are fixed.
    pub separation: u8,
    /// Quantum of threads of the foreground process, in quantum units.
    pub foreground_units: u8,
    /// Quantum of other threads, in quantum units.
    pub background_units: u8,
}

impl Win32PrioritySeparation {
    /// One value for each possible pair of foreground and background quanta. Each other 32-bit value selects the same
    /// quanta as one value in this table. The edition (client or server) determines which value this is. If quanta are
    /// fixed, two values with the same quanta can still differ in the priority boost after a wait.
    pub const TABLE: [Win32PrioritySeparation; 8] = [
        Win32PrioritySeparation(0x14),
        Win32PrioritySeparation(0x15),
        Win32PrioritySeparation(0x16),
        Win32PrioritySeparation(0x18),
        Win32PrioritySeparation(0x24),
        Win32PrioritySeparation(0x25),
        Win32PrioritySeparation(0x26),
        Win32PrioritySeparation(0x28),
    ];

    /// Returns the six bits that Windows reads.
    pub fn bits(self) -> u32 {
        self.0 & 0x3f
    }

    /// Decodes the value for a server or a client. Some bits select a default that differs between servers and clients.
    pub fn decode(self, server: bool) -> Quantum {
        let long = match self.0 >> 4 & 3 {
            1 => true,
            2 => false,
            _ => server,
        };
        let variable = match self.0 >> 2 & 3 {
            1 => true,
            2 => false,
            _ => !server,
        };
        let separation = (self.0 & 3).min(2) as u8;
        Quantum::new(long, variable, separation)
    }
}

/// Returns the kernel variable `PspForegroundQuantum`: quanta in units, indexed by
/// `PsPrioritySeparation`.
fn table(long: bool, variable: bool) -> [u8; 3] {
    match (variable, long) {
        (true, false) => [6, 12, 18],
        (true, true) => [12, 24, 36],
        (false, false) => [18; 3],
        (false, true) => [36; 3],
    }
}

impl Quantum {
    fn new(long: bool, variable: bool, separation: u8) -> Quantum {
        let table = table(long, variable);
        Quantum {
            long,
            variable,
            separation,
            foreground_units: table[usize::from(separation)],
            background_units: table[0],
        }
    }

    /// Decodes the kernel variables `PsPrioritySeparation` (1 number, displayed by `dd`) and
    /// `PspForegroundQuantum` (3 bytes, displayed by `db`). Returns `None` if the published table has no
    /// such values.
    pub fn from_kernel(separation: u32, foreground_quantum: [u8; 3]) -> Option<Quantum> {
        let separation = u8::try_from(separation).ok().filter(|&units| units < 3)?;
        [(false, true), (true, true), (false, false), (true, false)]
            .into_iter()
            .find(|&(long, variable)| table(long, variable) == foreground_quantum)
            .map(|(long, variable)| Quantum::new(long, variable, separation))
    }

    /// Returns the ratio of the foreground quantum to the background quantum.
    pub fn ratio(self) -> u8 {
        self.foreground_units / self.background_units
    }
}

/// Converts quantum units to milliseconds at the nominal clock tick of 15.625 ms.
pub fn units_to_ms(units: u8) -> f64 {
    f64::from(units) * 1_000.0 / UNITS_PER_SECOND as f64
}

/// Converts quantum units to CPU cycles at the nominal frequency `cpu_hz`, rounded down.
///
/// Since Vista, Windows charges quanta in cycles instead of clock ticks.
pub fn units_to_cycles(units: u64, cpu_hz: u64) -> u64 {
    let cycles = u128::from(units) * u128::from(cpu_hz) / UNITS_PER_SECOND;
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    const CLIENT: bool = false;
    const SERVER: bool = true;

    #[test]
    fn every_value_matches_the_published_table() {
        let rows = include_str!("../tests/data/win32_priority_separation.csv");
        let mut seen = 0;
        for row in rows.lines().filter(|row| !row.starts_with('#')) {
            let cells: Vec<&str> = row.split(',').collect();
            let number = |column: usize| cells[column].parse::<u32>().expect("a number");
            let quantum = Win32PrioritySeparation(number(0)).decode(cells[1] == "server");
            let expected = Quantum {
                long: cells[2] == "long",
                variable: cells[3] == "variable",
                separation: number(4) as u8,
                foreground_units: number(5) as u8,
                background_units: number(6) as u8,
            };
            assert_eq!(quantum, expected, "{row}");
            seen += 1;
        }
        assert_eq!(seen, 128);
    }

    /// The rows are from PC-Tuning's "Win32PrioritySeparation" notes. They are valid for clients and
    /// servers.
    #[test]
    fn published_rows_hold_on_clients_and_servers() {
        for (value, long, variable, foreground, background) in [
            (0x14, true, true, 62.5, 62.5),
            (0x15, true, true, 125.0, 62.5),
            (0x16, true, true, 187.5, 62.5),
            (0x18, true, false, 187.5, 187.5),
            (0x24, false, true, 31.25, 31.25),
            (0x25, false, true, 62.5, 31.25),
            (0x26, false, true, 93.75, 31.25),
            (0x28, false, false, 93.75, 93.75),
        ] {
            for edition in [CLIENT, SERVER] {
                let quantum = Win32PrioritySeparation(value).decode(edition);
                assert_eq!((quantum.long, quantum.variable), (long, variable));
                assert_eq!(units_to_ms(quantum.foreground_units), foreground);
                assert_eq!(units_to_ms(quantum.background_units), background);
            }
        }
    }

    /// The readings are kernel debugger output from PC-Tuning. The value 2 gives the separation 2 and
    /// the quanta `06 0c 12`. The value 0xffff3f91 gives the separation 1 and the quanta `0c 18 24`.
    #[test]
    fn debugger_readings_hold() {
        for (value, separation, quantum) in [
            (2, 2, [0x06, 0x0c, 0x12]),
            (0xffff_3f91, 1, [0x0c, 0x18, 0x24]),
        ] {
            let decoded = Win32PrioritySeparation(value).decode(CLIENT);
            assert_eq!(Quantum::from_kernel(separation, quantum), Some(decoded));
            let units = (decoded.foreground_units, decoded.background_units);
            assert_eq!(units, (quantum[separation as usize], quantum[0]));
        }
        assert_eq!(Quantum::from_kernel(2, [1, 2, 3]), None);
        assert_eq!(Quantum::from_kernel(3, [6, 12, 18]), None);
    }

    #[test]
    fn higher_bits_are_ignored() {
        let mut rng = Rng(7);
        for _ in 0..10_000 {
            let value = rng.bits() as u32;
            let low = Win32PrioritySeparation(value & 0x3f);
            for edition in [CLIENT, SERVER] {
                let whole = Win32PrioritySeparation(value);
                assert_eq!(whole.decode(edition), low.decode(edition), "{value:#x}");
            }
        }
    }

    #[test]
    fn units_are_thirds_of_a_nominal_tick_in_cycles() {
        assert_eq!(units_to_cycles(3, 64_000_000), 1_000_000);
        // Context switches on a machine with 3187 MHz gave 16,209.9 × 1024 cycles per unit.
        assert_eq!(units_to_cycles(10, 3_187_000_000) / 1024, 162_099);
        // The default foreground quantum is 18 units (93.75 ms). At 3 GHz, this is 281,250,000 cycles.
        assert_eq!(units_to_cycles(18, 3_000_000_000), 281_250_000);
        assert_eq!(units_to_cycles(u64::MAX, u64::MAX), u64::MAX);
    }
}
