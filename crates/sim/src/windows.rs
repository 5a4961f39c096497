//! Releases of Windows that the model simulates, and their differences.

use serde::Deserialize;

/// A release of Windows. The behaviour of the model and the layouts of events depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "Spelling")]
pub enum Windows {
    /// Windows 7 SP1 and Server 2008 R2 SP1, build 7601.
    Seven,
    /// Windows 10 22H2, build 19045.
    Ten,
    /// Windows 11 23H2, build 22631.
    Eleven23H2,
    /// Windows 11 25H2, build 26200.
    Eleven25H2,
}

/// Release as a scenario writes it: a string such as `"11-25H2"`, or a number such as `7`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Spelling {
    Number(u32),
    Name(String),
}

impl TryFrom<Spelling> for Windows {
    type Error = String;

    fn try_from(spelling: Spelling) -> Result<Windows, String> {
        let name = match spelling {
            Spelling::Number(number) => number.to_string(),
            Spelling::Name(name) => name,
        };
        match &name[..] {
            "7" => Ok(Windows::Seven),
            "10-22H2" => Ok(Windows::Ten),
            "11-23H2" => Ok(Windows::Eleven23H2),
            "11-25H2" => Ok(Windows::Eleven25H2),
            _ => Err(format!(
                "unknown release of Windows `{name}`, expected `7`, `10-22H2`, `11-23H2` or \
                 `11-25H2`"
            )),
        }
    }
}

impl Windows {
    /// Returns the build number in the trace's header.
    pub const fn build(self) -> u32 {
        match self {
            Windows::Seven => 7601,
            Windows::Ten => 19_045,
            Windows::Eleven23H2 => 22_631,
            Windows::Eleven25H2 => 26_200,
        }
    }

    /// Returns the major and minor version of Windows in the trace's header.
    pub(crate) fn version(self) -> (u8, u8) {
        match self {
            Windows::Seven => (6, 1),
            _ => (10, 0),
        }
    }
}
