//! Reader of WinDbg logs: kernel variables displayed by `dd`, `db`, `dw`, `dq` and `dt`.
//!
//! Commands:
//! <https://learn.microsoft.com/windows-hardware/drivers/debuggercmds/d--da--db--dc--dd--dd--df--dp--dq--du--dw--dw--dyb--dyd--display-memory->

use registry::Value;

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;
use crate::machine::Edition;
use crate::placed_value::{InputPosition, Place};

/// A command that displays memory, and the part of its output that was read.
struct Command {
    /// Size of a displayed unit, in bytes.
    unit: usize,
    /// Number of displayed units.
    count: usize,
    symbol: String,
    /// Displayed bytes.
    bytes: Vec<u8>,
    at: InputPosition,
}

/// Error: the debugger could not read the memory.
struct Unreadable;

/// Maximum number of bytes that are read from the output of one command.
const MAX_BYTES: usize = 4096;

pub(super) fn starts(text: &str) -> bool {
    text.lines()
        .take(2000)
        .any(|line| prompt(line).is_some() || banner(line).is_some())
}

/// Returns the command after a debugger prompt, such as `lkd> `, `kd> ` or `0: kd> `.
fn prompt(line: &str) -> Option<&str> {
    let (before, typed) = line.split_once("kd> ")?;
    let before = before.trim_start();
    let is_prompt = before.is_empty()
        || before == "l"
        || before.ends_with(": ") && before.as_bytes()[0].is_ascii_digit();
    is_prompt.then(|| typed.trim())
}

/// Returns the build in a banner such as `Windows 10 Kernel Version 19041 MP (4 procs) Free x64`.
fn banner(line: &str) -> Option<u32> {
    let (before, after) = line.split_once(" Kernel Version ")?;
    before.trim().starts_with("Windows").then_some(())?;
    after.split_whitespace().next()?.parse().ok()
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::WinDbg);
    let mut open: Option<Command> = None;
    for (index, written) in text.text.lines().enumerate() {
        if let Some(typed) = prompt(written) {
            finish(&mut reading, open.take());
            open = command(typed, line(index));
            continue;
        }
        if let Some(build) = banner(written) {
            reading.input.machine.build = Some(build);
        }
        if let Some(product) = written.trim().strip_prefix("Product: ") {
            // All client editions have the product `WinNt`.
            reading.input.machine.edition = match product.split(',').next().unwrap_or("") {
                "Server" | "ServerNt" => Some(Edition::Server),
                "LanManNt" => Some(Edition::DomainController),
                _ => None,
            };
        }
        if let Some((symbol, value)) = field(written) {
            reading.found(
                Place::Kernel { symbol },
                Some(Value::Dword(value)),
                line(index),
            );
            continue;
        }
        let Some(command) = &mut open else { continue };
        if written.starts_with("Couldn't resolve") {
            reading.complain(
                line(index),
                format!(
                    "unknown symbol {}: the kernel does not have it, or symbols were not loaded",
                    command.symbol
                ),
            );
            open = None;
        } else if let Err(Unreadable) = display(command, written) {
            let what = format!("the memory of {} was not readable", command.symbol);
            reading.complain(line(index), what);
        }
    }
    finish(&mut reading, open);
    reading
}

/// Parses a command that displays a variable, such as `dd nt!PsPrioritySeparation L1`.
fn command(typed: &str, at: InputPosition) -> Option<Command> {
    let mut words = typed.split_whitespace();
    let unit = match words.next()? {
        "db" => 1,
        "dw" => 2,
        "dd" => 4,
        "dq" => 8,
        _ => return None,
    };
    let symbol = words.next()?;
    let symbol = symbol.rsplit('!').next()?;
    // A number is an address, which does not identify a setting.
    symbol
        .starts_with(|first: char| first.is_ascii_alphabetic())
        .then_some(())?;
    let count = words.next().and_then(|count| {
        let digits = count.strip_prefix(['l', 'L'])?;
        usize::from_str_radix(digits, 16).ok()
    });
    Some(Command {
        unit,
        // If the command has no count, the variable is the first unit of the output.
        count: count.unwrap_or(1),
        symbol: symbol.to_owned(),
        bytes: Vec::new(),
        at,
    })
}

/// Adds a line of output. It has an address, units in hexadecimal and, for `db`, their characters.
fn display(command: &mut Command, written: &str) -> Result<(), Unreadable> {
    let mut words = written.split_whitespace();
    let is_address = |word: &str| {
        word.len() >= 8
            && word
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'`')
    };
    if !words.next().is_some_and(is_address) {
        return Ok(());
    }
    let wanted = command.count.saturating_mul(command.unit).min(MAX_BYTES);
    // The output of `db` has a hyphen between the eighth and ninth byte.
    let units = words.flat_map(|word| word.split('-'));
    for word in units {
        if command.bytes.len() >= wanted {
            break;
        }
        let digits = word.replace('`', "");
        if digits.starts_with('?') {
            return Err(Unreadable);
        }
        let Ok(number) = u64::from_str_radix(&digits, 16) else {
            break;
        };
        command.bytes.extend(&number.to_le_bytes()[..command.unit]);
    }
    Ok(())
}

fn finish(reading: &mut Reading, command: Option<Command>) {
    let Some(command) = command else { return };
    if command.bytes.is_empty() {
        return;
    }
    let value = match (command.unit, command.bytes.as_slice()) {
        (4, &[a, b, c, d]) => Value::Dword(u32::from_le_bytes([a, b, c, d])),
        (8, bytes) if bytes.len() == 8 => Value::from_bytes(11, bytes),
        (_, bytes) => Value::Binary(bytes.to_vec()),
    };
    let place = Place::Kernel {
        symbol: command.symbol,
    };
    reading.found(place, Some(value), command.at);
}

/// Parses a field in the output of `dt`, such as `   +0x281 QuantumReset : 18 ''`.
fn field(written: &str) -> Option<(String, u32)> {
    let rest = written.trim_start().strip_prefix("+0x")?;
    let (offset, rest) = rest.split_once(' ')?;
    u32::from_str_radix(offset, 16).ok()?;
    let (name, value) = rest.split_once(':')?;
    let value = value.split_whitespace().next()?;
    let value = match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => value.parse().ok()?,
    };
    Some((name.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    #[test]
    fn variables_are_read() {
        let text = "Windows 10 Kernel Version 19041 MP (4 procs) Free x64\n\
            Product: WinNt, suite: TerminalServer SingleUserTS\n\
            lkd> dd PsPrioritySeparation L1\n\
            fffff803`1a4fc5c4  00000002\n\
            lkd> db PspForegroundQuantum L3\n\
            fffff803`1a52b874  06 0c 12                                         ...\n\
            lkd> dd nt!HalpTscSyncPolicy l1\n\
            fffff803`1a47c4c0  00000002\n\
            lkd> dd KiGlobalTimerResolutionRequests L1\n\
            Couldn't resolve error at 'KiGlobalTimerResolutionRequests '\n\
            lkd> dt nt!_KPROCESS ffffb50f`4e3c2080 QuantumReset\n\
            \x20  +0x281 QuantumReset : 6 ''\n\
            0: kd> db PspForegroundQuantum L3\n\
            fffff803`1a52b874  ?? ?? ??                                         ???\n";
        assert!(starts(text));
        let read = read("log.txt", &decode(text.as_bytes())).input;
        let lines: Vec<String> = (read.found.iter())
            .map(|found| {
                let value = found.value.as_ref().unwrap();
                format!("{} {value} {}", found.place, found.origin)
            })
            .collect();
        assert_eq!(
            lines,
            [
                "nt!PsPrioritySeparation 0x2 log.txt:3",
                "nt!PspForegroundQuantum 06,0c,12 log.txt:5",
                "nt!HalpTscSyncPolicy 0x2 log.txt:7",
                "nt!QuantumReset 0x6 log.txt:12",
            ]
        );
        assert_eq!(read.machine.build, Some(19041));
        assert_eq!(read.complaints.count, 2);
    }
}
