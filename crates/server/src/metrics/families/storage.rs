//! Families of storage, cache and watches. The cache is filled from the store once and follows
//! every commit, so metrics that upstream has for both are one here.

use pintle_encryption::TRANSFORMATION_BOUNDS;
use pintle_etcd::{LEASE_BOUNDS, REQUEST_BOUNDS};
use pintle_registry::measures::READ_WAIT_BOUNDS;

use super::Stability::{Alpha, Beta, Stable, Unsaid};
use super::{Family, counter, families, gauge, seconds, whole};
use crate::encryption::{PLUGIN_CALL_BOUNDS, SEED_BOUNDS};

const RESOURCE: &[&str] = &["group", "resource"];
const REQUEST: &[&str] = &["group", "operation", "resource"];
const CALL: &[&str] = &["grpc_method", "grpc_service", "grpc_type"];

families! {
    STORAGE_OBJECTS = gauge("apiserver_storage_objects", Stable, &["resource"],
        "(Deprecated since 1.34.0) Objects that are stored; apiserver_resource_objects takes its place.");
    RESOURCE_OBJECTS = gauge("apiserver_resource_objects", Alpha, RESOURCE,
        "Objects that are stored.");
    RESOURCE_SIZE = gauge("apiserver_resource_size_estimate_bytes", Alpha, RESOURCE,
        "Bytes of the JSON of the objects that are stored.");
    STORAGE_SIZE = gauge("apiserver_storage_size_bytes", Stable, &["storage_cluster_id"],
        "Bytes of the database on the disk.");
    ENCRYPTION_RELOADS = counter("apiserver_encryption_config_controller_automatic_reloads_total", Alpha, &["apiserver_id_hash", "status"],
        "Attempts to take over a changed configuration of encryption.");
    ENCRYPTION_RELOADED = gauge("apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds", Alpha, &["apiserver_id_hash", "status"],
        "When that was tried last.");
    ENCRYPTION_CONFIG = gauge("apiserver_encryption_config_controller_last_config_info", Alpha, &["apiserver_id_hash", "hash"],
        "The configuration of encryption that was taken over last, by its hash.");
    TRANSFORMATIONS = counter("apiserver_storage_transformation_operations_total", Alpha, &["resource", "status", "transformation_type", "transformer_prefix"],
        "Values that were encrypted or decrypted.");
    TRANSFORMATION_DURATION = seconds("apiserver_storage_transformation_duration_seconds", Alpha, &["transformation_type", "transformer_prefix"], &TRANSFORMATION_BOUNDS,
        "How long it took to encrypt or decrypt a value.");
    PLUGIN_CALLS = seconds("apiserver_envelope_encryption_kms_operations_latency_seconds", Alpha, &["grpc_status_code", "method_name", "provider_name"], &PLUGIN_CALL_BOUNDS,
        "How long calls of KMS plugins took.");
    PLUGIN_KEYS = gauge("apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds", Alpha, &["apiserver_id_hash", "key_id_hash", "provider_name"],
        "When a KMS plugin said last that it encrypts by a key.");
    PLUGIN_KEY_USES = counter("apiserver_envelope_encryption_key_id_hash_total", Alpha, &["apiserver_id_hash", "key_id_hash", "provider_name", "transformation_type"],
        "Values that were encrypted or decrypted with seeds that a key of a KMS plugin encrypted.");
    PLUGIN_KEY_USED = gauge("apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds", Alpha, &["apiserver_id_hash", "key_id_hash", "provider_name", "transformation_type"],
        "When a value was encrypted or decrypted last with a seed that a key of a KMS plugin encrypted.");
    SEEDS_MADE = seconds("apiserver_storage_data_key_generation_duration_seconds", Alpha, &[], &SEED_BOUNDS,
        "How long it took to make seeds for KMS plugins to encrypt.");
    SEEDS_FAILED = counter("apiserver_storage_data_key_generation_failures_total", Alpha, &[],
        "Seeds that could not be made.");
    PLUGIN_INVALID_KEYS = counter("apiserver_envelope_encryption_invalid_key_id_from_status_total", Alpha, &["error", "provider_name"],
        "Keys of KMS plugins whose names cannot be used.");
    PLUGIN_SOURCES = gauge("apiserver_envelope_encryption_dek_source_cache_size", Alpha, &["provider_name"],
        "Seeds and keys that KMS plugins have decrypted and that are remembered.");
    STORAGE_EVENTS = counter("apiserver_storage_events_received_total", Beta, RESOURCE,
        "Changes that came from the store.");
    DECODE_ERRORS = counter("apiserver_storage_decode_errors_total", Alpha, RESOURCE,
        "Stored objects that could not be read.");
    CACHE_LISTS = counter("apiserver_cache_list_total", Alpha, &["group", "index", "resource"],
        "Lists that were answered from memory.");
    CACHE_LOOKED_AT = counter("apiserver_cache_list_fetched_objects_total", Alpha, &["group", "index", "resource"],
        "Objects that lists looked at.");
    CACHE_LISTED = counter("apiserver_cache_list_returned_objects_total", Alpha, RESOURCE,
        "Objects that lists gave.");
    CONSISTENT_READS = counter("apiserver_watch_cache_consistent_read_total", Alpha, &["fallback", "group", "resource", "success"],
        "Lists of the newest state that were answered from memory.");
    EVENTS_RECEIVED = counter("apiserver_watch_cache_events_received_total", Alpha, RESOURCE,
        "Changes that the cache took in.");
    EVENTS_DISPATCHED = counter("apiserver_watch_cache_events_dispatched_total", Alpha, RESOURCE,
        "Changes that the cache gave to watches.");
    INITIALIZATIONS = counter("apiserver_watch_cache_initializations_total", Alpha, RESOURCE,
        "How often the cache was filled.");
    READ_WAITS = seconds("apiserver_watch_cache_read_wait_seconds", Alpha, RESOURCE, &READ_WAIT_BOUNDS,
        "How long readers waited for a version.");
    CACHE_VERSION = gauge("apiserver_watch_cache_resource_version", Alpha, RESOURCE,
        "The newest version that readers see.");
    INITIAL_EVENTS = counter("apiserver_init_events_total", Alpha, RESOURCE,
        "Objects that watches began with.");
    TERMINATED_WATCHERS = counter("apiserver_terminated_watchers_total", Alpha, RESOURCE,
        "Watches that ended because they were too slow.");
    ETCD_DURATION = seconds("etcd_request_duration_seconds", Alpha, REQUEST, &REQUEST_BOUNDS,
        "How long requests to etcd took.");
    ETCD_REQUESTS = counter("etcd_requests_total", Alpha, REQUEST,
        "Requests to etcd.");
    ETCD_ERRORS = counter("etcd_request_errors_total", Alpha, REQUEST,
        "Requests to etcd that had no answer or were refused.");
    ETCD_BOOKMARKS = counter("etcd_bookmark_total", Alpha, RESOURCE,
        "How often etcd told how far its watch is, though nothing had happened.");
    LEASE_OBJECTS = whole("etcd_lease_object_counts", Alpha, &[], &LEASE_BOUNDS,
        "Objects that were given one lease of etcd's.");
    STORAGE_LISTS = counter("apiserver_storage_list_total", Alpha, RESOURCE,
        "Lists that were read from etcd.");
    STORAGE_FETCHED = counter("apiserver_storage_list_fetched_objects_total", Alpha, RESOURCE,
        "Objects that lists read from etcd.");
    CALLS_STARTED = counter("grpc_client_started_total", Unsaid, CALL,
        "Calls of etcd's API that were begun.");
    CALLS_SENT = counter("grpc_client_msg_sent_total", Unsaid, CALL,
        "Messages that were sent to etcd.");
    CALLS_RECEIVED = counter("grpc_client_msg_received_total", Unsaid, CALL,
        "Messages that came from etcd.");
    CALLS_HANDLED = counter("grpc_client_handled_total", Unsaid, &["grpc_code", "grpc_method", "grpc_service", "grpc_type"],
        "Calls of etcd's API that ended.");
    STORE_WRITABLE = gauge("pintle_store_writable", Alpha, &[],
        "Whether the store takes writes: 1, or 0 from a failure of its disk until the disk is well again.");
}
