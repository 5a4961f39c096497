//! Quantities as scenarios write them: `15us`, `64KiB`, `2.5%`.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Visitor};
use thiserror::Error;

/// A duration as an integer number of nanoseconds. Scenarios write it with a unit: `100ns`, `15us`, `1.5ms`,
/// `30.333s`, `1m`, `2h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Nanoseconds(pub u64);

/// An amount of data as an integer number of bytes. Scenarios write it with or without a unit: `1472`,
/// `64KiB`, `1.5MiB`, `1GB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bytes(pub u64);

/// A share of a total, from 0 to 1. Scenarios write it as a percentage: `2.5%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Share(f64);

/// Error in the text of a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected {expected}, found `{found}`")]
pub(crate) struct QuantityError {
    /// Description of the expected quantity, with examples.
    pub(crate) expected: &'static str,
    /// Text that was found.
    pub(crate) found: String,
}

/// A type whose values scenarios write as strings.
pub(crate) trait TextQuantity: FromStr<Err: fmt::Display> {
    /// Description of the expected text, with examples. It completes the sentence "expected …".
    const EXPECTED: &'static str;
}

impl TextQuantity for Nanoseconds {
    const EXPECTED: &'static str = "a duration such as 15us, 1.5ms or 3s";
}

impl TextQuantity for Bytes {
    const EXPECTED: &'static str = "a number of bytes such as 1472, 64KiB or 1MB";
}

impl TextQuantity for Share {
    const EXPECTED: &'static str = "a share such as 2.5%, from 0% to 100%";
}

const DURATIONS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

const SIZES: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

impl FromStr for Nanoseconds {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Nanoseconds, QuantityError> {
        let nanoseconds = whole(text, &DURATIONS);
        nanoseconds
            .map(Nanoseconds)
            .ok_or_else(|| unlike::<Self>(text))
    }
}

impl FromStr for Bytes {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Bytes, QuantityError> {
        whole(text, &SIZES)
            .map(Bytes)
            .ok_or_else(|| unlike::<Self>(text))
    }
}

impl FromStr for Share {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Share, QuantityError> {
        const PARTS_OF_A_PERCENT: u64 = 10_000_000_000;
        whole(text, &[("%", PARTS_OF_A_PERCENT)])
            .map(|parts| parts as f64 / (100 * PARTS_OF_A_PERCENT) as f64)
            .filter(|&share| share <= 1.0)
            .map(Share)
            .ok_or_else(|| unlike::<Self>(text))
    }
}

impl Share {
    /// Returns the share as a number from 0 to 1.
    pub(crate) fn get(self) -> f64 {
        self.0
    }
}

impl From<Nanoseconds> for u64 {
    fn from(duration: Nanoseconds) -> u64 {
        duration.0
    }
}

impl From<u64> for Nanoseconds {
    fn from(nanoseconds: u64) -> Nanoseconds {
        Nanoseconds(nanoseconds)
    }
}

impl From<Bytes> for u64 {
    fn from(bytes: Bytes) -> u64 {
        bytes.0
    }
}

impl From<u64> for Bytes {
    fn from(bytes: u64) -> Bytes {
        Bytes(bytes)
    }
}

/// Returns the error for a text that is not a valid `T`.
fn unlike<T: TextQuantity>(text: &str) -> QuantityError {
    QuantityError {
        expected: T::EXPECTED,
        found: text.to_owned(),
    }
}

/// Parses a decimal number that is followed by a unit. `units` has the name and the size of each unit.
/// Returns the value in the smallest unit. Returns `None` if the text has another form, the value is not an
/// integer, or the value does not fit into 64 bits.
fn whole(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let size = units.iter().find(|(name, _)| *name == unit)?.1;
    let (integer, fraction) = match number.split_once('.') {
        Some((integer, fraction)) if !fraction.is_empty() => (integer, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    let parts = 10_u64.checked_pow(fraction.len().try_into().ok()?)?;
    let fraction = match fraction {
        "" => 0,
        digits => u128::from(digits.parse::<u64>().ok()?) * u128::from(size),
    };
    if !fraction.is_multiple_of(parts.into()) {
        return None;
    }
    let integer = integer.parse::<u64>().ok()?.checked_mul(size)?;
    integer.checked_add((fraction / u128::from(parts)).try_into().ok()?)
}

/// Deserialises a value from a string. If this fails, the error names the expected form.
pub(crate) fn from_string<'de, T: TextQuantity, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct Text<T>(PhantomData<T>);

    impl<T: TextQuantity> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(T::EXPECTED)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(PhantomData))
}

impl<'de> Deserialize<'de> for Nanoseconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Nanoseconds, D::Error> {
        from_string(deserializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        from_string(deserializer)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        from_string(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact() {
        for (text, nanoseconds) in [
            ("0s", 0),
            ("100ns", 100),
            ("15us", 15_000),
            ("15µs", 15_000),
            ("1.5ms", 1_500_000),
            ("0.000001ms", 1),
            ("30.333s", 30_333_000_000),
            (" 62 s ", 62_000_000_000),
            ("1m", 60_000_000_000),
            ("2.5h", 9_000_000_000_000),
            ("18446744073.709551615s", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Nanoseconds(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn sizes_and_shares_are_read() {
        assert_eq!("1472".parse(), Ok(Bytes(1_472)));
        assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("1.5MiB".parse(), Ok(Bytes(1_572_864)));
        assert_eq!("1 GB".parse(), Ok(Bytes(1_000_000_000)));
        for (text, share) in [
            ("0%", 0.0),
            ("2.5%", 0.025),
            ("33.3 %", 0.333),
            ("100%", 1.0),
        ] {
            assert_eq!(text.parse::<Share>().map(Share::get), Ok(share), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused() {
        let error = "15 bananas".parse::<Nanoseconds>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a duration such as 15us, 1.5ms or 3s, found `15 bananas`"
        );
        for text in [
            "",
            "s",
            "15",
            "-1s",
            "+1s",
            "1.s",
            ".5s",
            ".",
            "1..5s",
            "1.5.5s",
            "1e3s",
            "0.5ns",
            "1 m s",
            "18446744073.709551616s",
            "99999999999999999999s",
            "0.00000000000000000000s",
        ] {
            assert!(text.parse::<Nanoseconds>().is_err(), "{text}");
        }
        assert!("1.5".parse::<Bytes>().is_err());
        assert!("64 kib".parse::<Bytes>().is_err());
        assert!("101%".parse::<Share>().is_err());
        assert!("0.5".parse::<Share>().is_err());
    }

    #[test]
    fn scenarios_give_quantities_as_strings() {
        #[derive(Debug, serde::Deserialize)]
        struct Disk {
            seek: Nanoseconds,
            block: Bytes,
            misses: Share,
        }
        let disk: Disk = toml::from_str("seek = '8ms'\nblock = '4KiB'\nmisses = '5%'").unwrap();
        assert_eq!((disk.seek.0, disk.block.0), (8_000_000, 4_096));
        assert_eq!(disk.misses.get(), 0.05);

        let error = toml::from_str::<Disk>("seek = 8\nblock = '1'\nmisses = '1%'").unwrap_err();
        assert!(
            error.message().contains("expected a duration such as 15us"),
            "{error}"
        );
    }
}
