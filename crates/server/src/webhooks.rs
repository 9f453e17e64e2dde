//! Calls to webhooks: HTTPS with an authority of the webhook's own.

use pintle_crd::{Answer, Caller, Endpoint};
use pintle_value::Str;

/// Carries requests to webhooks.
pub(crate) struct Webhooks;

impl Caller for Webhooks {
    fn call<'a>(&'a self, endpoint: &'a Endpoint, _body: Vec<u8>) -> Answer<'a> {
        Box::pin(async move { Err(format!("Post {:?}: not supported", endpoint.url)) })
    }

    fn uid(&self) -> Str {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("an operating system without randomness runs no TLS");
        pintle_meta::uid::format(bytes).into()
    }
}
