//! Families of storage, cache and watches. The cache is initialized from the store once and follows
//! every commit, so metrics that upstream has for both have the same value here.

use pintle_encryption::TRANSFORMATION_BOUNDS;
use pintle_etcd::{LEASE_BOUNDS, REQUEST_BOUNDS};
use pintle_registry::measures::READ_WAIT_BOUNDS;
use pintle_store::{BATCH_BOUNDS, COMMIT_BOUNDS};

use super::Stability::{Alpha, Beta, Stable, Unstated};
use super::{Family, counter, families, gauge, seconds, whole};
use crate::encryption::{PLUGIN_CALL_BOUNDS, SEED_BOUNDS};

const RESOURCE: &[&str] = &["group", "resource"];
const REQUEST: &[&str] = &["group", "operation", "resource"];
const CALL: &[&str] = &["grpc_method", "grpc_service", "grpc_type"];

families! {
    STORAGE_OBJECTS = gauge("apiserver_storage_objects", Stable, &["resource"],
        "(Deprecated since 1.34.0) Stored objects; use apiserver_resource_objects instead.");
    RESOURCE_OBJECTS = gauge("apiserver_resource_objects", Alpha, RESOURCE,
        "Stored objects.");
    RESOURCE_SIZE = gauge("apiserver_resource_size_estimate_bytes", Alpha, RESOURCE,
        "Bytes of the JSON of stored objects.");
    STORAGE_SIZE = gauge("apiserver_storage_size_bytes", Stable, &["storage_cluster_id"],
        "Size of the database on disk, in bytes.");
    ENCRYPTION_RELOADS = counter("apiserver_encryption_config_controller_automatic_reloads_total", Alpha, &["apiserver_id_hash", "status"],
        "Reloads of the encryption configuration.");
    ENCRYPTION_RELOADED = gauge("apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds", Alpha, &["apiserver_id_hash", "status"],
        "When the encryption configuration was last reloaded, by status.");
    ENCRYPTION_CONFIG = gauge("apiserver_encryption_config_controller_last_config_info", Alpha, &["apiserver_id_hash", "hash"],
        "The encryption configuration in use, by its hash.");
    TRANSFORMATIONS = counter("apiserver_storage_transformation_operations_total", Alpha, &["resource", "status", "transformation_type", "transformer_prefix"],
        "Encryptions and decryptions of values.");
    TRANSFORMATION_DURATION = seconds("apiserver_storage_transformation_duration_seconds", Alpha, &["transformation_type", "transformer_prefix"], &TRANSFORMATION_BOUNDS,
        "How long the encryption or decryption of a value took.");
    PLUGIN_CALLS = seconds("apiserver_envelope_encryption_kms_operations_latency_seconds", Alpha, &["grpc_status_code", "method_name", "provider_name"], &PLUGIN_CALL_BOUNDS,
        "How long calls of KMS plugins took.");
    PLUGIN_KEYS = gauge("apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds", Alpha, &["apiserver_id_hash", "key_id_hash", "provider_name"],
        "When the status of a KMS plugin last named a key.");
    PLUGIN_KEY_USES = counter("apiserver_envelope_encryption_key_id_hash_total", Alpha, &["apiserver_id_hash", "key_id_hash", "provider_name", "transformation_type"],
        "Values that were encrypted or decrypted with a seed of a KMS plugin's key.");
    PLUGIN_KEY_USED = gauge("apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds", Alpha, &["apiserver_id_hash", "key_id_hash", "provider_name", "transformation_type"],
        "When a value was last encrypted or decrypted with a seed of a KMS plugin's key.");
    SEEDS_MADE = seconds("apiserver_storage_data_key_generation_duration_seconds", Alpha, &[], &SEED_BOUNDS,
        "How long the generation of a seed for a KMS plugin took.");
    SEEDS_FAILED = counter("apiserver_storage_data_key_generation_failures_total", Alpha, &[],
        "Failed generations of seeds.");
    PLUGIN_INVALID_KEYS = counter("apiserver_envelope_encryption_invalid_key_id_from_status_total", Alpha, &["error", "provider_name"],
        "Invalid key ids in the status of KMS plugins.");
    PLUGIN_SOURCES = gauge("apiserver_envelope_encryption_dek_source_cache_size", Alpha, &["provider_name"],
        "Cached seeds and keys that KMS plugins have decrypted.");
    STORAGE_EVENTS = counter("apiserver_storage_events_received_total", Beta, RESOURCE,
        "Changes received from the store.");
    DECODE_ERRORS = counter("apiserver_storage_decode_errors_total", Alpha, RESOURCE,
        "Stored objects that could not be decoded.");
    CACHE_LISTS = counter("apiserver_cache_list_total", Alpha, &["group", "index", "resource"],
        "Lists served from the watch cache.");
    CACHE_LOOKED_AT = counter("apiserver_cache_list_fetched_objects_total", Alpha, &["group", "index", "resource"],
        "Objects that lists read from the watch cache.");
    CACHE_LISTED = counter("apiserver_cache_list_returned_objects_total", Alpha, RESOURCE,
        "Objects that lists returned.");
    CONSISTENT_READS = counter("apiserver_watch_cache_consistent_read_total", Alpha, &["fallback", "group", "resource", "success"],
        "Consistent reads served from the watch cache.");
    EVENTS_RECEIVED = counter("apiserver_watch_cache_events_received_total", Alpha, RESOURCE,
        "Changes that the watch cache applied.");
    EVENTS_DISPATCHED = counter("apiserver_watch_cache_events_dispatched_total", Alpha, RESOURCE,
        "Changes that the watch cache dispatched to watches.");
    INITIALIZATIONS = counter("apiserver_watch_cache_initializations_total", Alpha, RESOURCE,
        "Initializations of the watch cache.");
    READ_WAITS = seconds("apiserver_watch_cache_read_wait_seconds", Alpha, RESOURCE, &READ_WAIT_BOUNDS,
        "How long reads waited for a resource version.");
    CACHE_VERSION = gauge("apiserver_watch_cache_resource_version", Alpha, RESOURCE,
        "The newest resource version in the watch cache.");
    INITIAL_EVENTS = counter("apiserver_init_events_total", Alpha, RESOURCE,
        "Objects sent as initial events of watches.");
    TERMINATED_WATCHERS = counter("apiserver_terminated_watchers_total", Alpha, RESOURCE,
        "Watches that were closed because they were too slow.");
    ETCD_DURATION = seconds("etcd_request_duration_seconds", Alpha, REQUEST, &REQUEST_BOUNDS,
        "How long requests to etcd took.");
    ETCD_REQUESTS = counter("etcd_requests_total", Alpha, REQUEST,
        "Requests to etcd.");
    ETCD_ERRORS = counter("etcd_request_errors_total", Alpha, REQUEST,
        "Requests to etcd that failed.");
    ETCD_BOOKMARKS = counter("etcd_bookmark_total", Alpha, RESOURCE,
        "Progress notifications of etcd's watch.");
    LEASE_OBJECTS = whole("etcd_lease_object_counts", Alpha, &[], &LEASE_BOUNDS,
        "Objects attached to one etcd lease.");
    STORAGE_LISTS = counter("apiserver_storage_list_total", Alpha, RESOURCE,
        "Lists read from etcd.");
    STORAGE_FETCHED = counter("apiserver_storage_list_fetched_objects_total", Alpha, RESOURCE,
        "Objects that lists read from etcd.");
    CALLS_STARTED = counter("grpc_client_started_total", Unstated, CALL,
        "gRPC calls to etcd that were started.");
    CALLS_SENT = counter("grpc_client_msg_sent_total", Unstated, CALL,
        "gRPC messages sent to etcd.");
    CALLS_RECEIVED = counter("grpc_client_msg_received_total", Unstated, CALL,
        "gRPC messages received from etcd.");
    CALLS_HANDLED = counter("grpc_client_handled_total", Unstated, &["grpc_code", "grpc_method", "grpc_service", "grpc_type"],
        "gRPC calls to etcd that completed.");
    STORE_COMMITS = seconds("pintle_store_commit_duration_seconds", Alpha, &[], &COMMIT_BOUNDS,
        "How long the embedded store took to commit a batch of writes, the synchronisation of its disk included.");
    STORE_BATCHES = whole("pintle_store_commit_batch_writes", Alpha, &[], &BATCH_BOUNDS,
        "Writes that the embedded store committed together.");
    ENCODING_BYTES = gauge("pintle_encoding_cache_bytes", Alpha, &[],
        "Memory of the encodings of objects that are cached besides their JSON.");
    COMPRESSED_BYTES = gauge("pintle_compressed_list_bytes", Alpha, &[],
        "Memory of the compressed parts of lists that are cached.");
    STORE_WRITABLE = gauge("pintle_store_writable", Alpha, &[],
        "1 if the store accepts writes; 0 after a failure of its disk until the disk works again.");
}
