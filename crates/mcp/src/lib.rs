//! Answers about traces for assistants, by the Model Context Protocol (MCP).
//!
//! [`Server`] has tools that read traces in the folders that the user named at the start. `definitions` declares
//! the tools, `tools` has a file for each, `resources` and `prompts` have the rest of the protocol. `opened` keeps
//! traces open, `call` cancels work and reports its progress.
//!
//! A trace is hostile input for the model that reads an answer. Names from a trace are quoted, cut and escaped,
//! and other text is between random marks (`marked`). No tool changes the machine, writes files, opens a file
//! outside of the folders (`folders`) or uses the network.
//!
//! Specification: <https://modelcontextprotocol.io/specification/2026-07-28>

mod answer;
mod arguments;
mod call;
mod conditions;
mod definitions;
mod failure;
mod finding_id;
mod folders;
#[cfg(feature = "http")]
mod http;
mod marks;
mod names;
mod open_traces;
mod prompts;
mod resources;
#[cfg(feature = "sql")]
mod results;
mod server;
mod tools;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;

pub use folders::{FolderError, Folders};
#[cfg(feature = "http")]
pub use http::{HttpService, http_service};
pub use open_traces::Opening;
pub use server::Server;

/// Time for the last answers after the client closed its side.
const GRACE: Duration = Duration::from_millis(200);

/// Input that reports its end.
struct WatchedInput<R> {
    input: R,
    ended: Arc<Notify>,
}

impl<R: AsyncRead + Unpin> AsyncRead for WatchedInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (room, before) = (buffer.remaining(), buffer.filled().len());
        let read = Pin::new(&mut self.input).poll_read(context, buffer);
        if read.is_ready() && room > 0 && buffer.filled().len() == before {
            self.ended.notify_one();
        }
        read
    }
}

/// Serves one client on standard input and output, until the client closes its side.
///
/// # Errors
/// Returns an error if the client does not speak the protocol, or the connection fails.
pub fn serve_stdio(server: Server) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let (input, output) = rmcp::transport::stdio();
        let ended = Arc::new(Notify::new());
        let input = WatchedInput {
            input,
            ended: Arc::clone(&ended),
        };
        let running = server.serve((input, output)).await;
        let running = running.map_err(io::Error::other)?;
        let gone = async {
            ended.notified().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            served = running.waiting() => served.map_err(io::Error::other).map(drop),
            // The SDK would wait some seconds for the answers of running calls, although the client is gone.
            () = gone => Ok(()),
        }
    });
    // The end of the process also ends all work, so the server does not wait for the work.
    runtime.shutdown_background();
    served
}
