//! The releases of Windows that the model knows, and how they differ.

use serde::Deserialize;

/// A release of Windows. Behaviour and the layouts of events differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Windows {
    /// Windows 7 SP1 and Server 2008 R2 SP1, build 7601.
    #[serde(rename = "7")]
    Seven,
    /// Windows 10 22H2, build 19045.
    #[serde(rename = "10-22H2")]
    Ten,
    /// Windows 11 23H2, build 22631.
    #[serde(rename = "11-23H2")]
    Eleven23H2,
    /// Windows 11 25H2, build 26200.
    #[serde(rename = "11-25H2")]
    Eleven25H2,
}

impl Windows {
    /// The build's number, as the trace's header says it.
    pub fn build(self) -> u32 {
        match self {
            Windows::Seven => 7601,
            Windows::Ten => 19_045,
            Windows::Eleven23H2 => 22_631,
            Windows::Eleven25H2 => 26_200,
        }
    }

    /// Major and minor version, as the trace's header says them.
    pub fn version(self) -> (u8, u8) {
        match self {
            Windows::Seven => (6, 1),
            _ => (10, 0),
        }
    }
}
