//! Decoding of the setting Win32PrioritySeparation.

use std::io::{self, Write};
use std::str::FromStr;

use rules::quantum::{
    IDLE_CLASS_UNITS, Quantum, TABLE_DOUBTED_FROM, Win32PrioritySeparation, units_to_ms,
};
use serde::Serialize;
use tune::machine::Machine;

use crate::cli::Failure;
use crate::output::{self, Columns, Side};

/// Id of the setting in the catalogue.
pub(super) const ID: &str = "win32prioritysep";

/// JSON output: decoded value of the setting. Programs rely on its fields.
#[derive(Serialize)]
pub(super) struct DecodedQuantum {
    /// Complete value of the setting. Absent if the input is the output of a debugger.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u32>,
    /// Bits of the value that Windows reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Meaning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Meaning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Meaning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
}

#[derive(Serialize)]
struct Meaning {
    #[serde(flatten)]
    quantum: Quantum,
    foreground_ms: f64,
    background_ms: f64,
    ratio: u8,
    wake_boost: u8,
}

impl Meaning {
    fn new(quantum: Quantum) -> Self {
        Meaning {
            quantum,
            foreground_ms: units_to_ms(quantum.foreground_units),
            background_ms: units_to_ms(quantum.background_units),
            ratio: quantum.ratio(),
            wake_boost: quantum.separation,
        }
    }
}

/// Values of kernel variables, as a debugger prints them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readout {
    separation: u32,
    quantum: [u8; 3],
}

impl FromStr for Readout {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Readout, Self::Err> {
        const EXPECTED: &str = "expected PsPrioritySeparation, a colon and the three bytes of \
                                PspForegroundQuantum in hexadecimal, such as 2:060c12";
        let (separation, bytes) = text.split_once(':').ok_or(EXPECTED)?;
        let digits: String = bytes.chars().filter(|digit| *digit != ' ').collect();
        let number = u32::from_str_radix(&digits, 16).map_err(|_| EXPECTED)?;
        let [0, quantum @ ..] = number.to_be_bytes() else {
            return Err(EXPECTED);
        };
        match digits.len() {
            6 => Ok(Readout {
                separation: separation.trim().parse().map_err(|_| EXPECTED)?,
                quantum,
            }),
            _ => Err(EXPECTED),
        }
    }
}

/// Decodes a value for a machine. If the edition is unknown, decodes it for a client and for a server.
pub(super) fn decode(value: u32, machine: &Machine) -> DecodedQuantum {
    let setting = Win32PrioritySeparation(value);
    let is = |server: bool| {
        let is_possible = machine
            .edition
            .is_none_or(|edition| edition.is_server() == server);
        is_possible.then(|| Meaning::new(setting.decode(server)))
    };
    DecodedQuantum {
        value: Some(value),
        bits: Some(setting.bits()),
        client: is(false),
        server: is(true),
        kernel: None,
        doubt: doubt(machine),
    }
}

fn doubt(machine: &Machine) -> Option<String> {
    let build = machine.build.filter(|build| *build >= TABLE_DOUBTED_FROM)?;
    Some(format!(
        "the table is not verified for build {build}: from build {TABLE_DOUBTED_FROM} on, turns of \
         1.74 ms were measured. Check a trace (laglab explain, theory quantum)"
    ))
}

pub(super) fn write(decoded: &DecodedQuantum, out: &mut dyn Write) -> io::Result<()> {
    if let (Some(value), Some(bits)) = (decoded.value, decoded.bits) {
        let same = if value == bits {
            String::new()
        } else {
            format!("; only the low six bits count, so equal to {bits:#04x}")
        };
        output::paragraph(out, &format!("{value:#x} ({bits:06b}){same}"))?;
    }
    let mut columns = Columns::new(&[Side::Left; 7]);
    columns.row([
        "",
        "interval",
        "length",
        "foreground",
        "others",
        "ratio",
        "boost after a wait",
    ]);
    for (of, meaning) in [
        ("client", &decoded.client),
        ("server", &decoded.server),
        ("kernel", &decoded.kernel),
    ] {
        let Some(meaning) = meaning else { continue };
        let units = |units: u8, ms: f64| format!("{units} units, {ms:.2} ms");
        columns.row([
            of.to_owned(),
            interval(meaning.quantum).to_owned(),
            length(meaning.quantum).to_owned(),
            units(meaning.quantum.foreground_units, meaning.foreground_ms),
            units(meaning.quantum.background_units, meaning.background_ms),
            format!("{}:1", meaning.ratio),
            meaning.wake_boost.to_string(),
        ]);
    }
    columns.write(out)?;
    output::paragraph(
        out,
        &format!(
            "Three units are a clock tick of 15.625 ms. Processes of the Idle class always have \
             {IDLE_CLASS_UNITS} units."
        ),
    )?;
    if let Some(doubt) = &decoded.doubt {
        output::warning(out, &format!("Doubt: {doubt}."))?;
    }
    Ok(())
}

fn interval(quantum: Quantum) -> &'static str {
    if quantum.long { "Long" } else { "Short" }
}

fn length(quantum: Quantum) -> &'static str {
    if quantum.variable {
        "Variable"
    } else {
        "Fixed"
    }
}

/// Explains the values of kernel variables from a debugger.
pub(super) fn explain_readout(readout: Readout, json: bool) -> Result<(), Failure> {
    let Readout {
        separation,
        quantum,
    } = readout;
    let Some(decoded) = Quantum::from_kernel(separation, quantum) else {
        let [own, two, three] = quantum;
        return Err(Failure::Negative(format!(
            "in the published table, no value gives PsPrioritySeparation {separation} and \
             PspForegroundQuantum {own:02x} {two:02x} {three:02x}; newer builds may have another \
             table"
        )));
    };
    let decoded = DecodedQuantum {
        value: None,
        bits: None,
        client: None,
        server: None,
        kernel: Some(Meaning::new(decoded)),
        doubt: None,
    };
    if json {
        output::json(&decoded)?;
        return Ok(());
    }
    let mut out = output::for_people();
    write(&decoded, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Row in the JSON output of the table. Programs rely on its fields.
#[derive(Serialize)]
struct Row {
    value: u32,
    #[serde(flatten)]
    meaning: Meaning,
}

/// Prints a table of all values with different meanings.
pub(super) fn table(json: bool) -> Result<(), Failure> {
    let rows = Win32PrioritySeparation::TABLE.map(|setting| Row {
        value: setting.0,
        // The meaning of these values does not depend on the edition, so `false` (client) holds for servers,
        // too.
        meaning: Meaning::new(setting.decode(false)),
    });
    if json {
        output::json(&rows)?;
        return Ok(());
    }
    let mut out = output::for_people();
    let mut columns = Columns::new(&[
        Side::Left,
        Side::Right,
        Side::Left,
        Side::Left,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
    ]);
    columns.row([
        "Hexadecimal",
        "Decimal",
        "Binary",
        "Interval",
        "Length",
        "Foreground units",
        "Background units",
        "Foreground ms",
        "Background ms",
    ]);
    for Row { value, meaning } in &rows {
        columns.row([
            format!("{value:#x}"),
            value.to_string(),
            format!("{value:06b}"),
            interval(meaning.quantum).to_owned(),
            length(meaning.quantum).to_owned(),
            meaning.quantum.foreground_units.to_string(),
            meaning.quantum.background_units.to_string(),
            format!("{:.2}", meaning.foreground_ms),
            format!("{:.2}", meaning.background_ms),
        ]);
    }
    columns.write(&mut out)?;
    output::paragraph(
        &mut out,
        "Each of these values has the same effect on clients and servers. Every other value has the effect of one of \
         these values, possibly of different ones on clients and servers. Only the boost after a wait can differ: \
         0x19 and 0x1a differ only in the boost, and so do 0x29 and 0x2a.",
    )?;
    output::paragraph(
        &mut out,
        &format!(
            "The bits are documented. The units of a quantum come from Windows Internals and debugger readings, \
             which name no build. From build {TABLE_DOUBTED_FROM} on, shorter turns were measured."
        ),
    )?;
    out.flush()?;
    Ok(())
}
