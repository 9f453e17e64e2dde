//! The API server: HTTP and TLS in front of the registry.
//!
//! A request passes through TLS, HTTP, request info, authentication, authorization and content
//! negotiation to a call on the registry; the result is encoded and sent back. Discovery, OpenAPI,
//! health and metrics are served here, too. [`Server::start`] starts a server, in a program or in a
//! test.
//!
//! Handlers must not know any kind, except reviews, component statuses, token requests and
//! connections to backends, which this server answers itself. Authentication, authorization,
//! fairness and aggregation know the kinds that configure them or that they check.
//!
//! Invariants: every error response is a `Status`, except where upstream sends plain text; every
//! input has a limit; no module holds a copy of a collection.

mod aggregation;
mod api;
mod audit;
mod audit_id;
mod audit_notes;
mod authentication;
mod authorization;
mod backends;
mod body;
mod compute;
mod config;
mod connection;
mod console;
mod cors;
mod discovery;
mod document_hash;
mod effective_version;
mod encryption;
mod error;
mod expiring;
mod fairness;
mod feature_gates;
mod followed_file;
mod grpc;
mod handlers;
mod header_text;
mod health;
mod identity;
mod in_progress;
mod kubeconfig;
mod lifecycle;
mod limits;
mod machine;
mod media_type;
mod metrics;
mod negotiation;
mod openapi;
mod options;
mod paths;
mod pki;
mod probe;
mod query;
mod relay;
mod reloads;
mod request_info;
mod request_log;
mod respond;
mod runtime;
mod server;
mod snapshots;
mod target;
mod tls;
mod token_issuer;
mod traces;
mod trust;
mod version;
mod webhooks;
mod websocket;
mod zpages;

pub use config::{
    AuditDelivery, AuditFormat, AuditLog, AuditMode, AuditOptions, AuditTruncation, AuditWebhook,
    AuthorizationFiles, Config, ConnectionLimits, Egress, EgressSelector, EgressTls,
    EncryptionFile, Extensions, ExternalTokens, KubeletClient, NamedServingFiles, OidcFlags,
    ProxiedAddresses, RequestHeader, ServiceAccounts, SnapshotSchedule, TlsParameters,
    TokenWebhook, Tracing, TracingEndpoint, Transport,
};
pub use cors::Cors;
pub use effective_version::EffectiveVersion;
pub use error::Error;
pub use feature_gates::{Feature, FeatureGates};
pub use kubeconfig::kubeconfig;
pub use machine::addresses as machine_addresses;
pub use pintle_admission::{Configuration as AdmissionConfiguration, Plugins};
pub use pintle_auth::Mode;
pub use pintle_auth::review::ReviewVersion;
pub use pintle_controllers::Selection;
pub use pintle_effects::PortRange;
pub use pintle_etcd::{Options as Etcd, Tls as EtcdTls};
pub use pintle_kinds::{Error as RuntimeConfigError, RuntimeConfig};
pub use pintle_layout::MediaType;
pub use pintle_store::{Inspection, is_guarded};
pub use pki::{
    CertificateProblem, Credentials, ListedCertificate, Signer, list_certificates, read_authorities,
};
pub use runtime::runtime;
pub use server::{
    BackupEtcd, Liveness, Running, Server, inspect_certificates, inspect_store, store_directory,
};
pub use snapshots::Download;
pub use version::GIT_VERSION as KUBERNETES_VERSION;
