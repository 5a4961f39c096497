//! Errors of the server.

use std::io;

/// Reason why the server cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server cannot listen on the port.
    #[error(
        "cannot listen on 127.0.0.1:{port}: {source}; choose another port with --port, or omit it \
         to use a free one"
    )]
    Listen {
        /// Port on which the server cannot listen.
        port: u16,
        /// Reason why the server cannot listen.
        source: io::Error,
    },
    /// The system stopped the server.
    #[error("the server stopped: {0}; restart it")]
    Serve(io::Error),
}
