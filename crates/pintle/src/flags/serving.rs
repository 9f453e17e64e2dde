//! The flags about the address of the server, its certificates, and its start and stop.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;
use super::tls::TlsFlags;

#[derive(Args, Debug)]
#[command(next_help_heading = "Serving")]
pub(super) struct ServingFlags {
    /// The IP address to listen on; 0.0.0.0 or :: listens on all addresses
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(super) bind_address: IpAddr,
    /// The port to listen on; 0 selects a free port
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    pub(super) secure_port: u16,
    /// The IP address at which members of the cluster reach the server [default: the bind address]
    #[arg(long, value_name = "IP")]
    pub(super) advertise_address: Option<IpAddr>,
    /// The directory in which certificates are generated and stored [default: pki in the data
    /// directory]
    #[arg(long, value_name = "DIR")]
    pub(super) cert_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) tls: TlsFlags,
    /// Allow cross-origin requests of web pages with these origins: regular expressions, such as
    /// '//example\.com(:|$)'
    #[arg(long, value_name = "REGEX,…", value_delimiter = ',')]
    pub(super) cors_allowed_origins: Vec<String>,
    /// Serve the console, a web page that shows the stored objects, at /console/. Users log in with
    /// their credentials for the API
    #[arg(long)]
    pub(super) console: bool,
    /// How long the server goes on serving after a stop signal while /readyz fails, so that load
    /// balancers stop sending requests to it
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(super) shutdown_delay_duration: Duration,
    /// How long /livez succeeds after the start although the start has not finished
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(super) livez_grace_period: Duration,
}
