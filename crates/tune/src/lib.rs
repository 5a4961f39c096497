//! Windows settings: their real effect, their values on a machine, and changes with their undo.
//!
//! [`inputs`] reads exports of a machine as [placed values](placed_value). A placed value has a place, a value, and the
//! line or offset in the export. Reports also have [`observation`] values, which are not settings. The
//! [`catalogue`] describes the settings and their defaults by build and edition of the [`machine`].
//! [`decode`] computes effects that depend on more than one value. On top of these modules, [`audit`] judges a machine, [`plan`] prepares changes with their undo, and
//! [`diff`] compares two machines.

pub mod audit;
pub mod catalogue;
pub mod decode;
pub mod diff;
pub mod image;
pub mod inputs;
pub mod machine;
pub mod observation;
pub mod placed_value;
pub mod plan;
mod reference;
mod same;
pub mod state;

pub use reference::reference;
