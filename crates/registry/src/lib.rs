//! Access to the Windows registry on any system: keys and values, hive files, and the elements of boot
//! entries.
//!
//! [`Hive`] reads a hive file (a part of the registry) in memory. Windows first writes a change to the hive's
//! transaction logs. So a copied hive may lack the last changes. [`replay`] applies these changes from the
//! logs. [`bcd`] has the names of the elements in a boot configuration store. Such a store is also a hive.
//!
//! A hive is untrusted input. No content can make the reader panic, run forever or allocate more memory than
//! the limits of the reader.

pub mod bcd;
mod hive;
mod hive_log;
mod key;
mod value;

pub use hive::{Hive, HiveError, HiveKey, HiveValue, is_hive};
pub use hive_log::{HiveLog, ReplayNote, is_hive_log, is_log_name_of, replay};
pub use key::{Entry, Key, is_same_name};
pub use value::Value;
