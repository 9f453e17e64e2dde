//! A client of KMS plugins: the KMS v2 API, as unary gRPC calls over a Unix socket.
//! upstream: `k8s.io/kms/apis/v2/api.proto`, `kmsv2/grpc_service.go`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pintle_encryption::Kms;
use pintle_grpc::{Code, Failure, Stage, framed};
use prost::Message;

use super::measures::Measures;
use crate::config::socket;
use crate::grpc::{Channel, Destination};

/// The wait between two attempts to connect to a plugin.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// A client of one plugin, with at most one connection.
#[derive(Debug)]
pub(super) struct Client {
    /// The plugin's name.
    name: String,
    measures: Arc<Measures>,
    socket: PathBuf,
    timeout: Duration,
    channel: Channel,
}

#[derive(Clone, PartialEq, Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(string, tag = "2")]
    pub(super) healthz: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) ciphertext: Bytes,
    #[prost(string, tag = "2")]
    pub(super) uid: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub(super) annotations: BTreeMap<String, Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(super) uid: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) ciphertext: Bytes,
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    pub(super) annotations: BTreeMap<String, Bytes>,
}

impl Client {
    /// A client for a plugin's endpoint: `unix:///path`, or `unix:///@name` for an abstract socket.
    pub(super) fn new(kms: &Kms, measures: Arc<Measures>) -> Self {
        let socket = socket(&kms.endpoint);
        let channel = Channel::new(Destination::Unix(socket.clone()));
        Self { name: kms.name.clone(), measures, socket, timeout: kms.timeout, channel }
    }

    pub(super) async fn status(&self) -> Result<StatusResponse, String> {
        self.call("/v2.KeyManagementService/Status", &StatusRequest {}).await
    }

    pub(super) async fn encrypt(
        &self,
        request: &EncryptRequest,
    ) -> Result<EncryptResponse, String> {
        self.call("/v2.KeyManagementService/Encrypt", request).await
    }

    pub(super) async fn decrypt(
        &self,
        request: &DecryptRequest,
    ) -> Result<DecryptResponse, String> {
        self.call("/v2.KeyManagementService/Decrypt", request).await
    }

    /// Calls a method. As in upstream's client (`WaitForReady`), a call tries to connect until its
    /// timeout.
    async fn call<R: Message + Default>(
        &self,
        method: &'static str,
        request: &impl Message,
    ) -> Result<R, String> {
        let began = Instant::now();
        let (body, mut unsent) = (framed(request), None);
        let attempts = async {
            loop {
                match self.channel.call(method, &body).await {
                    Err(failure) if failure.stage == Stage::Unsent => {
                        unsent = Some(failure.message);
                        tokio::time::sleep(RETRY_PERIOD).await;
                    }
                    other => return other,
                }
            }
        };
        let outcome = match tokio::time::timeout(self.timeout, attempts).await {
            Ok(outcome) => outcome,
            Err(_) => {
                self.channel.reset().await; // the connection may be stuck
                let last =
                    unsent.map(|why| format!(", last error: {}: {why}", self.socket.display()));
                let why = format!("context deadline exceeded{}", last.unwrap_or_default());
                Err(Failure::lost(Code::DEADLINE_EXCEEDED, why))
            }
        };
        let code = outcome.as_ref().map_or_else(|failure| failure.code, |_| Code::OK);
        let name = code.name().or(Code::UNKNOWN.name()).unwrap_or_default();
        self.measures.calls.with([name, method, &self.name]).took(began.elapsed());
        outcome.map_err(|Failure { code, message, .. }| {
            format!("rpc error: code = {code} desc = {message}")
        })
    }
}
