//! Families of IP and port allocation and of issued certificates.

use pintle_effects::ALLOCATION_BOUNDS;

use super::Stability::Alpha;
use super::{Family, counter, families, gauge, seconds};

families! {
    ADDRESSES_ALLOCATED = gauge("kube_apiserver_clusterip_allocator_allocated_ips", Alpha, &["cidr"],
        "Allocated addresses of a range.");
    ADDRESSES_AVAILABLE = gauge("kube_apiserver_clusterip_allocator_available_ips", Alpha, &["cidr"],
        "Free addresses of a range.");
    ADDRESS_ALLOCATIONS = counter("kube_apiserver_clusterip_allocator_allocation_total", Alpha, &["cidr", "scope"],
        "Allocations of addresses to services: of requested ones (static) or of free ones (dynamic).");
    ADDRESS_ERRORS = counter("kube_apiserver_clusterip_allocator_allocation_errors_total", Alpha, &["cidr", "scope"],
        "Failed allocations of addresses to services.");
    ADDRESS_DURATION = seconds("kube_apiserver_clusterip_allocator_allocation_duration_seconds", Alpha, &["cidr"], &ALLOCATION_BOUNDS,
        "How long the allocation of an address took.");
    PORTS_ALLOCATED = gauge("kube_apiserver_nodeport_allocator_allocated_ports", Alpha, &[],
        "Allocated node ports.");
    PORTS_AVAILABLE = gauge("kube_apiserver_nodeport_allocator_available_ports", Alpha, &[],
        "Free node ports.");
    PORT_ALLOCATIONS = counter("kube_apiserver_nodeport_allocator_allocation_total", Alpha, &["scope"],
        "Allocations of node ports to services: of requested ones (static) or of free ones (dynamic).");
    PORT_ERRORS = counter("kube_apiserver_nodeport_allocator_allocation_errors_total", Alpha, &["scope"],
        "Failed allocations of node ports to services.");
    PORT_REPAIRS = counter("apiserver_nodeport_repair_port_errors_total", Alpha, &["type"],
        "Errors in the record of node ports that a repair corrected or found.");
    PORT_REPAIR_ERRORS = counter("apiserver_nodeport_repair_reconcile_errors_total", Alpha, &[],
        "Failed repairs of the record of node ports.");
    VALIDITIES_REQUESTED = counter("apiserver_certificates_registry_csr_requested_duration_total", Alpha, &["signerName"],
        "Certificates issued for requests with expirationSeconds.");
    VALIDITIES_HONORED = counter("apiserver_certificates_registry_csr_honored_duration_total", Alpha, &["signerName"],
        "Certificates issued for requests with expirationSeconds that have the requested duration.");
}
