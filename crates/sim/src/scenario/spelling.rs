//! Reading of tables in two steps: syntax, then meaning. Errors of both steps have the table's
//! position.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// Reads a table as a `Raw` and converts it to a `T`. Unlike `serde(try_from)`, it reports a failed
/// conversion at the table's position.
pub(super) fn understood<'de, Raw, T, D>(deserializer: D) -> Result<T, D::Error>
where
    Raw: Deserialize<'de>,
    T: TryFrom<Raw, Error = String>,
    D: Deserializer<'de>,
{
    struct Spelt<Raw, T>(PhantomData<(Raw, T)>);

    impl<'de, Raw, T> Visitor<'de> for Spelt<Raw, T>
    where
        Raw: Deserialize<'de>,
        T: TryFrom<Raw, Error = String>,
    {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a table such as { run = \"1ms\" }")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            let raw = Raw::deserialize(MapAccessDeserializer::new(map))?;
            T::try_from(raw).map_err(A::Error::custom)
        }
    }

    deserializer.deserialize_map(Spelt(PhantomData))
}
