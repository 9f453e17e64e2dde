//! The record of allocated node ports: `ranges/servicenodeports`, in upstream's format.
//!
//! It is one object for all services (a RangeAllocation), so that several API servers on the same
//! database allocate no port twice. A service's ports are allocated and released in the commit that
//! writes the service, by a posting to the record.
//!
//! Upstream: `pkg/registry/core/service/allocator/{bitmap.go,storage/storage.go}`.

use std::sync::{Arc, OnceLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_meta::Status;
use pintle_registry::allocation::{Companion, Posted};
use pintle_registry::request::Now;
use pintle_registry::{Object, Registry, Resource};
use pintle_value::Value;

use super::port_range::PortRange;

/// The name of the record.
pub(super) const NAME: &str = "servicenodeports";
/// Upstream's error if there is no record; a server creates the record at its start.
const ABSENT: &str = "cannot allocate resources of type servicenodeportallocations at this time";
const OTHER_RANGE: &str = "the provided range does not match the current range";

/// Reads and changes the record, through its resource, which is created at the first use.
#[derive(Default)]
pub(super) struct PortRecord(OnceLock<Option<Arc<Resource>>>);

impl PortRecord {
    pub(super) fn resource(&self, registry: &Registry) -> Result<&Arc<Resource>, Status> {
        let create = || pintle_kinds::internal("ranges").map(|ranges| registry.unserved(ranges));
        let resource = self.0.get_or_init(create).as_ref();
        resource.ok_or_else(|| Status::internal("ranges are not known"))
    }

    pub(super) fn found(&self, registry: &Registry) -> Result<Option<Arc<Object>>, Status> {
        Ok(registry.peek(self.resource(registry)?, "", NAME))
    }

    /// The allocated ports of the range.
    pub(super) fn taken(&self, registry: &Registry, range: PortRange) -> Result<Taken, Status> {
        let record = self.found(registry)?.ok_or_else(|| Status::internal(ABSENT))?;
        Taken::read(&record.tree()?, range).ok_or_else(|| Status::internal(OTHER_RANGE))
    }

    /// The posting that allocates and releases ports together with a write. If a port was allocated
    /// meanwhile, the write is tried again.
    pub(super) fn posting(
        &self,
        registry: &Registry,
        range: PortRange,
        (added, removed): (Vec<i64>, Vec<i64>),
        now: Now,
    ) -> Result<Option<Companion>, Status> {
        // Without a readable record of this range, there is nothing to release.
        if added.is_empty() && (removed.is_empty() || self.taken(registry, range).is_err()) {
            return Ok(None);
        }
        let post = move |record: &mut Value| {
            let taken = Taken::read(record, range);
            let mut taken = taken.ok_or_else(|| Status::internal(OTHER_RANGE))?;
            if added.iter().any(|port| taken.has(*port)) {
                return Ok(Posted::Outdated);
            }
            removed.iter().for_each(|port| taken.set(*port, false));
            added.iter().for_each(|port| taken.set(*port, true));
            taken.write(record);
            Ok(Posted::Changed)
        };
        let resource = self.resource(registry)?;
        Ok(Some(Companion::posting(resource, ("", NAME), now, Box::new(post))))
    }
}

/// The allocated ports of a range: bit 0 of byte 0 is the first port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    range: PortRange,
    bits: Vec<u8>,
}

impl Taken {
    /// No ports.
    pub(super) fn none(range: PortRange) -> Self {
        Self { range, bits: vec![0; range.len().div_ceil(8)] }
    }

    /// Reads a record; `None` if it is for another range or its data is invalid. Bits beyond the
    /// range are ignored.
    pub(super) fn read(record: &Value, range: PortRange) -> Option<Self> {
        (record.str_at(&["range"])? == range.to_string()).then_some(())?;
        // The data is a big-endian number without leading zeros: its last byte is for the first
        // ports.
        let data = record.str_at(&["data"]).unwrap_or_default();
        let mut bits = STANDARD.decode(data).ok()?;
        bits.reverse();
        bits.resize(range.len().div_ceil(8), 0);
        Some(Self { range, bits })
    }

    /// Writes the record.
    pub(super) fn write(&self, record: &mut Value) {
        let len = self.bits.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let number: Vec<u8> = self.bits[..len].iter().rev().copied().collect();
        let members = record.make_object();
        members.insert("range", self.range.to_string());
        members.insert("data", STANDARD.encode(number));
    }

    pub(super) fn has(&self, port: i64) -> bool {
        self.bit_of(port).is_some_and(|(byte, bit)| self.bits[byte] & bit != 0)
    }

    /// Allocates or releases a port. A port outside the range is ignored.
    pub(super) fn set(&mut self, port: i64, is_taken: bool) {
        match self.bit_of(port) {
            Some((byte, bit)) if is_taken => self.bits[byte] |= bit,
            Some((byte, bit)) => self.bits[byte] &= !bit,
            None => {}
        }
    }

    /// The allocated ports.
    pub(super) fn ports(&self) -> impl Iterator<Item = i64> + '_ {
        self.range.ports().filter(|port| self.has(*port))
    }

    /// The byte and bit of a port; `None` outside the range.
    fn bit_of(&self, port: i64) -> Option<(usize, u8)> {
        let at = usize::try_from(port.checked_sub(*self.range.ports().start())?).ok()?;
        (at < self.range.len()).then_some((at / 8, 1 << (at % 8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a record with these ports has this data, and can be read again.
    #[track_caller]
    fn check(range: &str, ports: &[i64], data: &[u8]) {
        let range: PortRange = range.parse().expect("a range");
        let mut taken = Taken::none(range);
        ports.iter().for_each(|port| taken.set(*port, true));
        let mut record = Value::object();
        taken.write(&mut record);
        assert_eq!(record.str_at(&["data"]), Some(&*STANDARD.encode(data)));
        assert_eq!(record.str_at(&["range"]), Some(&*range.to_string()));
        assert_eq!(Taken::read(&record, range), Some(taken.clone()));
        assert_eq!(taken.ports().collect::<Vec<_>>(), ports);
    }

    #[test]
    fn ports_are_bits_of_a_number() {
        check("30000-32767", &[], &[]);
        check("30000-32767", &[30000], &[1]);
        check("30000-32767", &[30001, 30009], &[2, 2]);
        check("30000-30008", &[30008], &[1, 0]);
        let mut last = vec![0; 346];
        last[0] = 0x80;
        check("30000-32767", &[32767], &last);
        check("1-65535", &[1, 65535], &[&[0x40][..], &[0; 8190], &[1]].concat());
    }

    #[test]
    fn ports_beyond_the_range_are_ignored() {
        let range: PortRange = "30000-30003".parse().expect("a range");
        let mut taken = Taken::none(range);
        for port in [i64::MIN, -1, 0, 29999, 30004, i64::MAX] {
            taken.set(port, true);
            assert!(!taken.has(port), "{port}");
        }
        assert_eq!(taken, Taken::none(range));
        let other = Value::from([("range", "1-2"), ("data", "")]);
        assert_eq!(Taken::read(&other, range), None);
    }
}
