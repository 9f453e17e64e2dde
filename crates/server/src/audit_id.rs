//! Audit ids of requests: UUIDs from a generator with a random seed. They are unique, not secret, so making one
//! needs no call to the operating system.

use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;

/// A generator of audit ids.
pub(crate) struct AuditIds {
    state: AtomicU64,
}

impl AuditIds {
    /// A generator with a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }

    /// A new id, in the form of a random UUID.
    pub(crate) fn next(&self) -> HeaderValue {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.random().to_be_bytes());
        bytes[8..].copy_from_slice(&self.random().to_be_bytes());
        HeaderValue::from_str(&pintle_meta::uid::format(bytes)).expect("a UUID is plain ASCII")
    }

    /// A number from 0 up to 1.
    pub(crate) fn fraction(&self) -> f64 {
        f64::from((self.random() >> 32) as u32) / (f64::from(u32::MAX) + 1.0)
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn random(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.state.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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
