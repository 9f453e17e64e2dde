//! The administrator's access to the server: its URL, and the kubeconfig that is written for it.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::certificates::Kubeconfig;
use crate::kubeconfig;
use crate::machine::random;
use crate::pki::{Pki, make_private_directory, write_private};
use crate::{Config, Error};

/// The administrator's access to the server.
pub(super) struct Access {
    pub(super) url: String,
    pub(super) kubeconfig: String,
    pub(super) kubeconfig_path: PathBuf,
    /// The temporary directory of the kubeconfig, if there is one. Dropping [`super::Running`]
    /// removes it.
    pub(super) temporary: Option<PathBuf>,
}

impl Access {
    /// Writes the kubeconfig.
    pub(super) fn new(config: &Config, address: SocketAddr, pki: &Pki) -> Result<Self, Error> {
        let url = format!("https://{}", reachable(address));
        let kubeconfig = kubeconfig::kubeconfig(&url, &pki.ca_pem, &pki.admin);
        let (kubeconfig_path, temporary) = write_kubeconfig(config, &kubeconfig)?;
        Ok(Self { url, kubeconfig, kubeconfig_path, temporary })
    }

    /// The path, URL and CA with which the kubeconfig is written again when the administrator's
    /// certificate is renewed.
    pub(super) fn renewed(&self, ca_pem: &str) -> Kubeconfig {
        let (path, url) = (self.kubeconfig_path.clone(), self.url.clone());
        Kubeconfig { path, url, ca_pem: ca_pem.to_owned() }
    }
}

/// An address at which clients on this machine can connect.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        std::net::IpAddr::V4(ip) if ip.is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        std::net::IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Writes the kubeconfig, and returns its path with the temporary directory that was made for it,
/// if any.
fn write_kubeconfig(config: &Config, text: &str) -> Result<(PathBuf, Option<PathBuf>), Error> {
    let (path, temporary) = match config.stored_kubeconfig() {
        Some(path) => (path, None),
        None => {
            let mut random_bytes = [0; 8];
            random(&mut random_bytes);
            let name = format!("pintle-{:016x}", u64::from_le_bytes(random_bytes));
            let directory = std::env::temp_dir().join(name);
            (directory.join("admin.kubeconfig"), Some(directory))
        }
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let made = directory.map_or(Ok(()), make_private_directory);
    made.and_then(|()| write_private(&path, text)).map_err(|error| error.of("kubeconfig"))?;
    let path = std::path::absolute(&path).unwrap_or(path);
    Ok((path, temporary))
}
