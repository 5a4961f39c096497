//! How long a thread may run before another of its priority gets a turn: the registry value
//! `Win32PrioritySeparation`, and quantum units as time and as CPU cycles.

use serde::{Deserialize, Serialize};

/// Quantum units in a second. A clock tick is 3 units and, nominally, 1/64 s (15.625 ms).
const UNITS_PER_SECOND: u128 = 3 * 64;

/// The quantum of threads of processes in the Idle priority class, in units, whatever
/// `Win32PrioritySeparation` says.
pub const IDLE_CLASS_UNITS: u8 = 6;

/// The first build whose threads were seen to take turns sooner than the documented table says.
pub const TABLE_DOUBTED_FROM: u32 = 26_100;

/// `HKLM\SYSTEM\CurrentControlSet\Control\PriorityControl\Win32PrioritySeparation`.
///
/// Windows reads its low six bits, `AABBCC`, and ignores the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Win32PrioritySeparation(pub u32);

impl Default for Win32PrioritySeparation {
    /// 2, which Windows installs.
    fn default() -> Win32PrioritySeparation {
        Win32PrioritySeparation(2)
    }
}

/// The quanta that a [`Win32PrioritySeparation`] stands for, in quantum units: 3 units are a clock
/// tick.
///
/// The table is the documented one. Builds from 26100 on have been seen to rotate threads of equal
/// priority sooner than it says (after a ninth of a tick, 1.74 ms); there it is the quantum that is
/// charged against, and no more than that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Quantum {
    /// Long quanta (the default of servers) rather than short ones (of clients).
    pub long: bool,
    /// The foreground process has longer quanta than others, by `separation`.
    pub variable: bool,
    /// `PsPrioritySeparation`, 0 to 2: which quantum the foreground process has, and also by how
    /// much a thread of it is boosted when its wait ends, even where quanta are fixed.
    pub separation: u8,
    /// The quantum of threads of the foreground process.
    pub foreground_units: u8,
    /// The quantum of other threads.
    pub background_units: u8,
}

impl Win32PrioritySeparation {
    /// A value for each meaning that is the same on clients and servers, but for the wake boost of
    /// fixed quanta: shorter names of all 2³² values.
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

    /// The six bits that Windows reads.
    pub fn bits(self) -> u32 {
        self.0 & 0x3f
    }

    /// What the value means on a server or a client, which differ in their defaults.
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

/// `PspForegroundQuantum`: units by `PsPrioritySeparation`.
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

    /// What a debugger's view of the kernel says: `PsPrioritySeparation` (`dd`, 1 number) and
    /// `PspForegroundQuantum` (`db`, 3 bytes). `None` if no value of the documented table gives them.
    pub fn from_kernel(separation: u32, foreground_quantum: [u8; 3]) -> Option<Quantum> {
        let separation = u8::try_from(separation).ok().filter(|&units| units < 3)?;
        [(false, true), (true, true), (false, false), (true, false)]
            .into_iter()
            .find(|&(long, variable)| table(long, variable) == foreground_quantum)
            .map(|(long, variable)| Quantum::new(long, variable, separation))
    }

    /// How many times longer the foreground's quantum is than that of others.
    pub fn ratio(self) -> u8 {
        self.foreground_units / self.background_units
    }
}

/// So many quantum units in milliseconds, at the nominal clock tick of 15.625 ms.
pub fn units_to_ms(units: u8) -> f64 {
    f64::from(units) * 1_000.0 / UNITS_PER_SECOND as f64
}

/// The cycles of a CPU of `cpu_hz` (its nominal speed) in so many quantum units, rounded down.
///
/// Since Vista, Windows charges quanta in cycles, not in clock ticks.
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
    fn every_value_means_what_the_documented_table_says() {
        let rows = include_str!("../../tests/data/win32_priority_separation.csv");
        let mut seen = 0;
        for row in rows.lines().filter(|row| !row.starts_with('#')) {
            let cells: Vec<&str> = row.split(',').collect();
            let number = |column: usize| cells[column].parse::<u32>().expect("a number");
            let found = Win32PrioritySeparation(number(0)).decode(cells[1] == "server");
            let expected = Quantum {
                long: cells[2] == "long",
                variable: cells[3] == "variable",
                separation: number(4) as u8,
                foreground_units: number(5) as u8,
                background_units: number(6) as u8,
            };
            assert_eq!(found, expected, "{row}");
            seen += 1;
        }
        assert_eq!(seen, 128);
    }

    /// The table of PC-Tuning's "Win32PrioritySeparation" notes, the same for clients and servers.
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

    /// `PsPrioritySeparation` and `PspForegroundQuantum` as a kernel debugger showed them
    /// (PC-Tuning): 2 and `06 0c 12` for the value 2, 1 and `0c 18 24` for 0xffff3f91.
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
        // Read from the context switches of a 3187 MHz machine: 16,209.9 × 1024 cycles a unit.
        assert_eq!(units_to_cycles(10, 3_187_000_000) / 1024, 162_099);
        // The default foreground quantum, 93.75 ms, at 3 GHz.
        assert_eq!(units_to_cycles(18, 3_000_000_000), 281_250_000);
        assert_eq!(units_to_cycles(u64::MAX, u64::MAX), u64::MAX);
    }
}
