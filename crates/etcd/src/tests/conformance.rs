//! The conformance suite of `pintle-store`, with a new server for each case.

use std::sync::Arc;

use pintle_store::conformance::Rebased;

use super::server::Server;

pintle_store::conformance!({
    match Server::start().await {
        Some(server) => {
            let store = server.store().await;
            Some((Arc::new(Rebased::new(Arc::new(store))) as _, server))
        }
        None => None,
    }
});
