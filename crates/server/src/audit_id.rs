//! Audit ids of requests: UUIDs from a generator with a random seed. They are unique, not secret,
//! so making one needs no call to the operating system.

use http::HeaderValue;
use pintle_trace::Ids;

/// A generator of audit ids.
pub(crate) struct AuditIds {
    ids: Ids,
}

impl AuditIds {
    /// A generator with a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { ids: Ids::new(seed) }
    }

    /// A new id, in the form of a random UUID.
    pub(crate) fn next(&self) -> HeaderValue {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.ids.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.ids.next().to_be_bytes());
        HeaderValue::from_str(&pintle_meta::uid::format(bytes)).expect("a UUID is plain ASCII")
    }

    /// A random number that is at least 0 and less than 1.
    pub(crate) fn fraction(&self) -> f64 {
        f64::from((self.ids.next() >> 32) as u32) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_look_like_uuids() {
        let ids = AuditIds::new(7);
        let (a, b) = (ids.next(), ids.next());
        assert_ne!(a, b);
        let text = a.to_str().unwrap();
        assert_eq!((text.len(), &text[8..9], &text[14..15]), (36, "-", "4"), "{text}");
    }

    #[test]
    fn fractions_are_below_one() {
        let ids = AuditIds::new(7);
        assert!((0..1000).map(|_| ids.fraction()).all(|f| (0.0..1.0).contains(&f)));
    }
}
