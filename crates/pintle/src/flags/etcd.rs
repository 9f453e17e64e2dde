//! The flags about etcd, under kube-apiserver's names.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use pintle_server::{Etcd, MediaType};

use super::duration;
use crate::etcd_access::EtcdAccess;

#[derive(Args, Debug)]
#[command(next_help_heading = "etcd")]
pub(super) struct EtcdFlags {
    #[command(flatten)]
    access: EtcdAccess,
    /// The interval at which etcd is compacted, by one of the servers; 0 disables compaction
    #[arg(long, value_name = "DURATION", default_value = "5m0s", value_parser = duration)]
    etcd_compaction_interval: Duration,
    /// How many seconds an etcd lease is reused for further objects with a TTL
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    lease_reuse_duration_seconds: u64,
    /// The time within which etcd must answer for the health check `etcd` to succeed
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    etcd_healthcheck_timeout: Duration,
    /// The time within which etcd must answer for the readiness check `etcd-readiness` to succeed
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    etcd_readycheck_timeout: Duration,
    /// The interval at which the size of etcd's database is read for /metrics; 0 disables this
    /// metric
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    etcd_db_metric_poll_interval: Duration,
    /// The encoding of objects of built-in kinds in etcd: application/vnd.kubernetes.protobuf or
    /// application/json. Both are read
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

    /// The etcd that the flags name, if they name one.
    pub(super) fn options(self) -> anyhow::Result<Option<Etcd>> {
        let interval = |every: Duration| (!every.is_zero()).then_some(every);
        let Some(etcd) = self.access.options()? else { return Ok(None) };
        Ok(Some(Etcd {
            compaction_interval: interval(self.etcd_compaction_interval),
            lease_reuse: Duration::from_secs(self.lease_reuse_duration_seconds),
            health_timeout: self.etcd_healthcheck_timeout,
            ready_timeout: self.etcd_readycheck_timeout,
            size_interval: interval(self.etcd_db_metric_poll_interval),
            ..etcd
        }))
    }
}
