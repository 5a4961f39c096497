//! Client of a server in the same process, over a pipe in memory.

use std::path::{Path, PathBuf};

use mcp::Server;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceExt};
use serde_json::Value;
use session::SymbolOptions;
use tables::Cache;

/// Number of bytes that count as one token. Tokens of English text have more bytes on average.
pub(crate) const BYTES_PER_TOKEN: usize = 3;

pub(crate) struct Client {
    pub(crate) service: RunningService<RoleClient, ()>,
}

/// Starts a server for a folder.
pub(crate) fn server(folder: &Path, symbols: Option<&Path>) -> Server {
    #[allow(clippy::needless_update, reason = "a feature adds a field")]
    let symbols = SymbolOptions {
        path: Some(symbols.unwrap_or(folder).to_str().unwrap().to_owned()),
        ..SymbolOptions::default()
    };
    Server::new(&[PathBuf::from(folder)], Cache::Off, symbols).unwrap()
}

impl Client {
    /// Connects with the handshake of the protocol version 2025-11-25 and earlier versions.
    pub(crate) async fn new(folder: &Path, symbols: Option<&Path>) -> Client {
        Client::with(server(folder, symbols), ClientLifecycleMode::Initialize).await
    }

    /// Connects without a handshake, as the protocol version 2026-07-28 does.
    pub(crate) async fn stateless(folder: &Path) -> Client {
        let lifecycle = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        };
        Client::with(server(folder, None), lifecycle).await
    }

    pub(crate) async fn with(server: Server, lifecycle: ClientLifecycleMode) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let running = server.serve(theirs).await.unwrap();
            running.waiting().await.unwrap();
        });
        let service = ().serve_with_lifecycle(ours, lifecycle).await.unwrap();
        Client { service }
    }

    /// Calls a tool, and checks that its text and its structured content are the same.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().unwrap().clone();
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.service.call_tool(request).await.unwrap();
        let text = text(&result);
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(Some(&parsed), result.structured_content.as_ref(), "{tool}");
        assert!(
            text.len() <= 8_000 * BYTES_PER_TOKEN,
            "{tool}: {} bytes",
            text.len()
        );
        result
    }

    /// Calls a tool that must succeed, and returns its answer.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await;
        assert_eq!(
            result.is_error,
            Some(false),
            "{tool} {arguments}: {}",
            text(&result)
        );
        result.structured_content.unwrap()
    }

    /// Calls a tool that must fail, and returns the error.
    pub(crate) async fn failure(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await;
        assert_eq!(
            result.is_error,
            Some(true),
            "{tool} {arguments}: {}",
            text(&result)
        );
        let error = result.structured_content.unwrap();
        assert!(!error["message"].as_str().unwrap().is_empty());
        error
    }

    /// Calls a tool that must fail, and returns the kind of the error.
    pub(crate) async fn fail(&self, tool: &str, arguments: Value) -> String {
        let error = self.failure(tool, arguments).await;
        error["error"].as_str().unwrap().to_owned()
    }
}

/// Returns the text of a result.
pub(crate) fn text(result: &CallToolResult) -> String {
    let mut texts = result
        .content
        .iter()
        .map(|content| content.as_text().unwrap().text.clone());
    let text = texts.next().unwrap();
    assert_eq!(texts.next(), None);
    text
}
