//! POST to `serviceaccounts/NAME/token`: answers a TokenRequest with a token. Nothing is stored.

use bytes::Bytes;
use pintle_meta::{Status, uid};
use pintle_registry::request::{Body, Recorder};

use super::Call;
use crate::options::{Write, write_options};
use crate::respond::{self, Response};
use crate::target::Found;
use crate::token_issuer::{self, RequestedToken};

/// The audit annotation that holds a token's id.
const ISSUED: &str = "authentication.kubernetes.io/issued-credential-id";

pub(super) async fn create(
    call: &Call<'_>,
    found: &Found,
    bytes: Bytes,
) -> Result<Response, Status> {
    const TYPE_NAME: &str = "io.k8s.api.authentication.v1.TokenRequest";
    let (negotiated, rendering) = call.negotiate(found)?;
    let encoding = call.preferences().body(found.encodings())?;
    let options = write_options(call.query, Write::Create, call.warnings)?;
    let body = Body { bytes, encoding };
    let (registry, target) = (&call.api.registry, &found.target);
    let context = call.context();
    // Another server may have just created the account or its pod.
    registry.catch_up().await?;
    let mut request =
        registry.receive(target, &body, &options, &context, token_issuer::set_defaults).await?;
    super::review::check_namespace(found, &request)?;
    let mut random = [0; 16];
    crate::machine::random(&mut random);
    let asked = RequestedToken {
        namespace: &target.namespace,
        name: &target.name,
        registry,
        api_audiences: call.api.authentication.tokens.api_audiences(),
        now: call.now,
        random,
    };
    call.warnings.extend(call.api.tokens.answer(&asked, &mut request)?);
    let id = uid::format(random);
    call.record.iter().for_each(|record| record.annotate(ISSUED, &format!("JTI={id}")));
    let json = rendering.value(&request, TYPE_NAME)?;
    Ok(respond::object(201, json, TYPE_NAME, negotiated))
}
