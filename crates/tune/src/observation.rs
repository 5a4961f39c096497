//! Values that reports contain and that are not settings, such as measured delays.

use std::fmt;

use serde::{Serialize, Serializer};
use wording::grouped;

use crate::placed_value::Origin;

/// A value of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observation {
    /// English name of the value in the report, without its unit.
    pub name: &'static str,
    /// Part of the machine to which the value belongs. `None` for the whole machine.
    pub subject: Option<Subject>,
    /// The value with its unit.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Report with the value, and the position in this report.
    #[serde(serialize_with = "as_text")]
    pub origin: Origin,
}

/// Part of a machine to which a value belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Subject {
    /// The kernel or a driver that the report does not name.
    Kernel,
    /// A process.
    Process {
        /// Path or file name of the program.
        program: String,
        /// Process id; `None` if the report does not contain it.
        id: Option<u32>,
    },
    /// A driver.
    Driver {
        /// File name of the driver.
        file: String,
        /// Description of the driver, with its vendor.
        description: Option<String>,
    },
}

/// A value with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "unit", content = "value")]
pub enum Quantity {
    /// Period of a timer, in units of 100 ns.
    #[serde(rename = "100 ns")]
    TimerPeriod(u32),
    /// Time in microseconds.
    #[serde(rename = "us")]
    Microseconds(Decimal),
    /// Part of a whole, in percent.
    #[serde(rename = "percent")]
    Percent(Decimal),
    /// Number of events or objects.
    #[serde(rename = "count")]
    Count(u64),
}

/// A number with as many decimals as the report prints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal {
    /// The number.
    pub number: f64,
    /// Number of digits after the decimal point.
    pub decimals: usize,
}

impl Decimal {
    /// Parses a positive number with a decimal point or a decimal comma, and without separators of thousands.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (whole, digits) = text.split_once(['.', ',']).unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(digits) {
            return None;
        }
        Some(Decimal {
            number: format!("{whole}.{digits}").parse().ok()?,
            decimals: text.len().saturating_sub(whole.len() + 1),
        })
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.number)
    }
}

fn as_text<S: Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(origin)
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.*}", self.decimals, self.number);
        let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
        match whole.parse() {
            Ok(whole) => write!(f, "{}{rest}", grouped(whole)),
            Err(_) => f.write_str(&text),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimerPeriod(units) => {
                let ms = f64::from(*units) / 10_000.0;
                write!(f, "{} × 100 ns ({ms} ms)", grouped((*units).into()))
            }
            Self::Microseconds(time) => write!(f, "{time} µs"),
            Self::Percent(part) => write!(f, "{part} %"),
            Self::Count(count) => f.write_str(&grouped(*count)),
        }
    }
}

impl fmt::Display for Subject {
    /// Formats the short form, without the description of a driver.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel => f.write_str("kernel or driver"),
            Self::Process { program, id: None } => f.write_str(program),
            Self::Process {
                program,
                id: Some(id),
            } => write!(f, "{program} (process {id})"),
            Self::Driver { file, .. } => f.write_str(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_printed_like_in_the_report() {
        for (text, expected) in [
            ("8433,70", "8,433.70"),
            ("178.263021", "178.263021"),
            ("12", "12"),
            ("0,000087", "0.000087"),
        ] {
            let decimal = Decimal::parse(text).unwrap();
            assert_eq!(decimal.to_string(), expected);
        }
        for wrong in ["", "-", "1,234.5", "inf", "-1", "1e9", "5."] {
            assert_eq!(Decimal::parse(wrong), None, "{wrong}");
        }
    }
}
