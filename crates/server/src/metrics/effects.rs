//! Writes the metrics of IP and port allocation and of issued certificates.

use pintle_effects::{Measures, PortRange, addresses_occupied, ports_occupied};
use pintle_registry::Registry;

use super::families as f;
use super::family::Page;
use super::{counters, distributions};

/// Writes all metrics of this module.
pub(super) fn write(registry: &Registry, range: PortRange, measures: &Measures, page: &mut Page) {
    let ranges = addresses_occupied(registry);
    let mut taken = page.family(&f::ADDRESSES_ALLOCATED);
    ranges.iter().for_each(|(range, occupied)| taken.value(&[range], occupied.taken));
    let mut free = page.family(&f::ADDRESSES_AVAILABLE);
    ranges.iter().for_each(|(range, occupied)| free.value(&[range], occupied.free));
    counters(page, &f::ADDRESS_ALLOCATIONS, &measures.addresses);
    counters(page, &f::ADDRESS_ERRORS, &measures.address_errors);
    distributions(page, &f::ADDRESS_DURATION, &measures.address_durations);
    if let Some(occupied) = ports_occupied(registry, range) {
        page.single(&f::PORTS_ALLOCATED, occupied.taken);
        page.single(&f::PORTS_AVAILABLE, occupied.free);
    }
    counters(page, &f::PORT_ALLOCATIONS, &measures.ports);
    counters(page, &f::PORT_ERRORS, &measures.port_errors);
    counters(page, &f::PORT_REPAIRS, &measures.port_repairs);
    page.single(&f::PORT_REPAIR_ERRORS, measures.failed_port_repairs.get());
    counters(page, &f::VALIDITIES_REQUESTED, &measures.requested_validities);
    counters(page, &f::VALIDITIES_HONORED, &measures.honored_validities);
}
