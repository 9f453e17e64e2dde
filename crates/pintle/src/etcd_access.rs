//! The flags with the address and the credentials of etcd, for the server and for the commands that
//! read or write etcd.

use std::path::PathBuf;

use clap::Args;
use pintle_server::{Credentials, Error, Etcd, EtcdTls, read_authorities};

/// The address and the credentials of etcd.
#[derive(Args, Clone, Debug)]
pub(crate) struct EtcdAccess {
    /// The URLs of the members of an etcd (3.4 or later) that stores the objects. Several servers
    /// may use the same etcd. The data directory then holds only certificates, which all servers
    /// must share
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    etcd_servers: Vec<String>,
    /// The authorities that sign the serving certificates of etcd, as PEM [default: the system's]
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    etcd_cafile: Option<PathBuf>,
    /// The client certificate for etcd, as PEM
    #[arg(long, value_name = "FILE", requires_all = ["etcd_servers", "etcd_keyfile"])]
    etcd_certfile: Option<PathBuf>,
    /// The key of --etcd-certfile, as PEM
    #[arg(long, value_name = "FILE", requires_all = ["etcd_servers", "etcd_certfile"])]
    etcd_keyfile: Option<PathBuf>,
    /// The prefix of all keys in etcd
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    etcd_prefix: String,
}

impl EtcdAccess {
    /// The etcd that the flags name, if they name one.
    pub(crate) fn options(self) -> anyhow::Result<Option<Etcd>> {
        if self.etcd_servers.is_empty() {
            return Ok(None);
        }
        let authorities = self.etcd_cafile.map(|path| read_authorities(&path, "etcd-cafile"));
        let authorities = authorities.transpose()?.map(String::into_bytes);
        let identity = self.etcd_certfile.zip(self.etcd_keyfile).map(|(certificate, key)| {
            let read = Credentials::read(&certificate, &key, ["etcd-certfile", "etcd-keyfile"])?;
            Ok::<_, Error>((read.certificate_pem.into_bytes(), read.key_pem.into_bytes()))
        });
        let identity = identity.transpose()?;
        Ok(Some(Etcd {
            endpoints: self.etcd_servers,
            tls: EtcdTls { authorities, identity },
            prefix: self.etcd_prefix,
            ..Etcd::default()
        }))
    }
}
