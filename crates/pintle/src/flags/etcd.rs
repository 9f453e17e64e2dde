//! The flags about etcd, under kube-apiserver's names.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use pintle_server::{Credentials, Error, Etcd, EtcdTls, MediaType, read_authorities};

use super::duration;

#[derive(Args, Debug)]
#[command(next_help_heading = "etcd")]
pub(super) struct EtcdFlags {
    /// Keep the objects in this etcd (3.4 or later), where other servers of the cluster keep them, too:
    /// URLs of its members. The data directory then has certificates only, which all servers must share
    #[arg(long, value_name = "URL,…", value_delimiter = ',', conflicts_with = "ephemeral")]
    etcd_servers: Vec<String>,
    /// The authorities that sign the certificates of etcd's members, as PEM [default: the system's]
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    etcd_cafile: Option<PathBuf>,
    /// The client certificate for etcd, as PEM
    #[arg(long, value_name = "FILE", requires_all = ["etcd_servers", "etcd_keyfile"])]
    etcd_certfile: Option<PathBuf>,
    /// The key of --etcd-certfile, as PEM
    #[arg(long, value_name = "FILE", requires_all = ["etcd_servers", "etcd_certfile"])]
    etcd_keyfile: Option<PathBuf>,
    /// What all keys in etcd begin with
    #[arg(long, value_name = "PREFIX", default_value = "/registry")]
    etcd_prefix: String,
    /// How often etcd is compacted, by the servers in turns; 0 is never
    #[arg(long, value_name = "DURATION", default_value = "5m0s", value_parser = duration)]
    etcd_compaction_interval: Duration,
    /// How many seconds a lease of etcd's is given to further objects that expire
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    lease_reuse_duration_seconds: u64,
    /// How long etcd may take to answer while the checks `etcd` say that it is well
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    etcd_healthcheck_timeout: Duration,
    /// How long etcd may take to answer while the check `etcd-readiness` of /readyz says yes
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    etcd_readycheck_timeout: Duration,
    /// How often the size of etcd's database is asked for, for /metrics; 0 is never
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    etcd_db_metric_poll_interval: Duration,
    /// As what objects of built-in kinds are written to etcd: application/vnd.kubernetes.protobuf or
    /// application/json; either is read
    #[arg(long, value_name = "TYPE", default_value = PROTOBUF, value_parser = media_type)]
    storage_media_type: MediaType,
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn media_type(text: &str) -> anyhow::Result<MediaType> {
    match text {
        PROTOBUF => Ok(MediaType::Protobuf),
        "application/json" => Ok(MediaType::Json),
        _ => bail!("objects are written as {PROTOBUF} or application/json"),
    }
}

impl EtcdFlags {
    pub(super) const fn media_type(&self) -> MediaType {
        self.storage_media_type
    }

    /// The etcd that the flags say, if they say one.
    pub(super) fn options(self) -> anyhow::Result<Option<Etcd>> {
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
        let interval = |every: Duration| (!every.is_zero()).then_some(every);
        Ok(Some(Etcd {
            endpoints: self.etcd_servers,
            tls: EtcdTls { authorities, identity },
            prefix: self.etcd_prefix,
            compaction_interval: interval(self.etcd_compaction_interval),
            lease_reuse: Duration::from_secs(self.lease_reuse_duration_seconds),
            health_timeout: self.etcd_healthcheck_timeout,
            ready_timeout: self.etcd_readycheck_timeout,
            size_interval: interval(self.etcd_db_metric_poll_interval),
            ..Etcd::default()
        }))
    }
}
