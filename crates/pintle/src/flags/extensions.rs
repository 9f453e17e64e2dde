//! Flags about extension API servers.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use pintle_server::Extensions;

#[derive(Args, Debug)]
#[command(next_help_heading = "Extension API servers")]
pub(super) struct ExtensionFlags {
    /// The client certificate with which this server authenticates to extension API servers, as PEM
    /// [default: a certificate of a separate authority, front-proxy-ca beside the other
    /// certificates]
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    proxy_client_cert_file: Option<PathBuf>,
    /// The key of --proxy-client-cert-file, as PEM
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    proxy_client_key_file: Option<PathBuf>,
    /// Connect to the endpoints of the services of extension API servers and webhooks, not to their
    /// cluster IPs. Use this where the server has no route to cluster IPs
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value = "false", default_missing_value = "true",
          value_parser = BoolishValueParser::new())]
    enable_aggregator_routing: bool,
}

impl ExtensionFlags {
    /// The connection to extension API servers.
    pub(super) fn extensions(self) -> Extensions {
        Extensions {
            client_files: self.proxy_client_cert_file.zip(self.proxy_client_key_file),
            by_endpoints: self.enable_aggregator_routing,
        }
    }
}
