//! All tests of the public interface in one program: linking many programs would take minutes.

mod delivery;
mod dissector;
mod namespaces;
mod receiver;
mod repair;
mod simulation;
mod sockets;
mod source;
mod tokio;
mod wire;
