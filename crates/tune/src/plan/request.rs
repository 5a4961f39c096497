//! What is asked to be changed, as people type it.

use std::str::FromStr;

/// `NAME=VALUE`, `NAME@PART=VALUE` for a setting that an adapter or a policy has, and `absent` as the
/// value for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The setting's name or id.
    pub name: String,
    /// Whose it is: the part of its key that differs.
    pub part: Option<String>,
    /// The value; `None` if it is to be removed.
    pub value: Option<String>,
}

/// Text that asks for no change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no change: give NAME=VALUE, NAME@PART=VALUE (an adapter's key or a policy, for \
     instance), or NAME=absent to remove the value"
)]
pub struct NotARequest(String);

impl FromStr for Request {
    type Err = NotARequest;

    fn from_str(text: &str) -> Result<Self, NotARequest> {
        let refused = || NotARequest(text.to_owned());
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
