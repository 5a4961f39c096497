//! What a setting of Windows really does, and a change with its undo.
//!
//! Readers turn what was exported of a machine into what was [found]: places and values, each
//! with the line or offset that it came from. The [catalogue] knows what settings do, on which
//! [machine]; what takes more than a row of it is [worked out](decode). From both come an [audit] of a
//! machine, a [plan] with its undo, and the [differences](diff) of two machines.
//!
//! Which of many settings makes it slow, a [search by measuring](bisect) finds. What is set up over
//! several machines has rooms of its own: [namespaces](dfsn) and their migration, what
//! [replicating](replica) a volume would cost, and the [adapters] of the machine at hand.

pub mod adapters;
pub mod audit;
pub mod bisect;
pub mod catalogue;
pub mod decode;
pub mod dfsn;
pub mod diff;
pub mod found;
pub mod image;
pub mod inputs;
pub mod known;
pub mod machine;
pub mod plan;
mod reference;
pub mod registry;
pub mod replica;
mod same;

pub use reference::reference;
