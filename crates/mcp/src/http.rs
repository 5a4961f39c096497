//! Streamable HTTP. Every request stands alone: the server keeps no session of a client.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::Server;

/// Service of streamable HTTP, for a router.
pub type HttpService = StreamableHttpService<Server, NeverSessionManager>;

/// Returns the service. It answers only requests for this machine; the caller checks all other access.
pub fn http_service(server: Server) -> HttpService {
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = false;
    config.json_response = true;
    config.max_request_body_bytes = 1 << 20;
    StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    )
}
