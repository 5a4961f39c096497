//! Changes that the user requests, as text.

use std::str::FromStr;

/// Requested change: `NAME=VALUE`. `NAME@PART=VALUE` selects one of several adapters or policies. The
/// value `absent` removes the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name or id of the setting.
    pub name: String,
    /// Name of the adapter, policy or other object to change. `None` if there is only one object.
    pub part: Option<String>,
    /// New value. `None` to remove the setting.
    pub value: Option<String>,
}

/// Error of parsing a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid change \"{0}\": give NAME=VALUE, NAME@PART=VALUE (for one adapter or policy), or NAME=absent to remove \
     the value"
)]
pub struct RequestError(String);

impl FromStr for Request {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let refused = || RequestError(text.to_owned());
        let (name, value) = text.split_once('=').ok_or_else(refused)?;
        let (name, part) = match name.split_once('@') {
            Some((name, part)) => (name, Some(part.trim().to_owned())),
            None => (name, None),
        };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || value.is_empty() || part.as_ref().is_some_and(String::is_empty) {
            return Err(refused());
        }
        Ok(Self {
            name: name.to_owned(),
            part,
            value: (value != "absent").then(|| value.to_owned()),
        })
    }
}
