//! Families of IP and port allocation and of issued certificates.

use pintle_effects::ALLOCATION_BOUNDS;

use super::Stability::Alpha;
use super::{Family, counter, families, gauge, seconds};

families! {
    ADDRESSES_ALLOCATED = gauge("kube_apiserver_clusterip_allocator_allocated_ips", Alpha, &["cidr"],
        "Addresses of a range that are taken.");
    ADDRESSES_AVAILABLE = gauge("kube_apiserver_clusterip_allocator_available_ips", Alpha, &["cidr"],
        "Addresses of a range that are free.");
    ADDRESS_ALLOCATIONS = counter("kube_apiserver_clusterip_allocator_allocation_total", Alpha, &["cidr", "scope"],
        "Addresses that services were given: those that they asked for, or free ones.");
    ADDRESS_ERRORS = counter("kube_apiserver_clusterip_allocator_allocation_errors_total", Alpha, &["cidr", "scope"],
        "Addresses that services could not be given.");
    ADDRESS_DURATION = seconds("kube_apiserver_clusterip_allocator_allocation_duration_seconds", Alpha, &["cidr"], &ALLOCATION_BOUNDS,
        "How long it took to find an address.");
    PORTS_ALLOCATED = gauge("kube_apiserver_nodeport_allocator_allocated_ports", Alpha, &[],
        "Node ports that are taken.");
    PORTS_AVAILABLE = gauge("kube_apiserver_nodeport_allocator_available_ports", Alpha, &[],
        "Node ports that are free.");
    PORT_ALLOCATIONS = counter("kube_apiserver_nodeport_allocator_allocation_total", Alpha, &["scope"],
        "Node ports that services were given: those that they asked for, or free ones.");
    PORT_ERRORS = counter("kube_apiserver_nodeport_allocator_allocation_errors_total", Alpha, &["scope"],
        "Node ports that services could not be given.");
    PORT_REPAIRS = counter("apiserver_nodeport_repair_port_errors_total", Alpha, &["type"],
        "Node ports of which the record said something wrong when it was repaired.");
    PORT_REPAIR_ERRORS = counter("apiserver_nodeport_repair_reconcile_errors_total", Alpha, &[],
        "Repairs of the record of node ports that failed.");
    VALIDITIES_REQUESTED = counter("apiserver_certificates_registry_csr_requested_duration_total", Alpha, &["signerName"],
        "Certificates that were issued for requests which say how long they are to be valid.");
    VALIDITIES_HONORED = counter("apiserver_certificates_registry_csr_honored_duration_total", Alpha, &["signerName"],
        "Certificates that were issued for requests which say how long they are to be valid, and are.");
}
