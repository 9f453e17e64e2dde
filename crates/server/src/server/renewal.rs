//! Renews the serving certificate of a server that runs for long.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::pki::Renewal;
use crate::tls::Serving;

/// How often it is looked whether a certificate nears its end, which is told weeks before.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Renews what is due, without end.
pub(super) async fn run(mut renewal: Renewal, serving: Arc<Serving>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let looked = renewal.look(SystemTime::now());
        let replaced = looked.and_then(|pair| pair.map_or(Ok(()), |pair| serving.replace(pair)));
        if let Err(error) = replaced {
            tracing::error!(%error, "the serving certificate cannot be renewed");
        }
    }
}
