//! A request that is built once and sent many times, with numbers filled into its gaps.

use std::ops::Range;

use memchr::memmem;

/// The gap for a number in a name, in a target or a body. The number has as many digits, so the
/// length stays.
pub const NAME: &str = "############";
/// The gap for a value that changes from request to request.
pub const VALUE: &str = "@@@@@@@@@@@@";

/// A request's bytes and the positions of its parts.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: &'static str,
    /// The body's media type.
    pub media_type: &'static str,
    bytes: Vec<u8>,
    target: Range<usize>,
    body: usize,
    names: Vec<usize>,
    values: Vec<usize>,
}

impl Call {
    /// Builds a call from a head whose first line has a target of `target_length` bytes, and a
    /// body.
    pub(crate) fn new(
        method: &'static str,
        media_type: &'static str,
        target_length: usize,
        head: String,
        body: &str,
    ) -> Self {
        let start = method.len() + 1;
        let body_start = head.len();
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.as_bytes());
        let names = memmem::find_iter(&bytes, NAME).collect();
        let values = memmem::find_iter(&bytes, VALUE).collect();
        let target = start..start + target_length;
        Self { method, media_type, bytes, target, body: body_start, names, values }
    }

    /// Fills the gaps in names.
    pub fn name(&mut self, number: u64) {
        put(&mut self.bytes, &self.names, number);
    }

    /// Fills the gaps for values.
    pub fn value(&mut self, number: u64) {
        put(&mut self.bytes, &self.values, number);
    }

    /// The whole request, for HTTP/1.1.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Path and query.
    pub fn target(&self) -> &[u8] {
        &self.bytes[self.target.clone()]
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }
}

fn put(bytes: &mut [u8], holes: &[usize], number: u64) {
    let digits = digits(number);
    for hole in holes {
        bytes[*hole..*hole + digits.len()].copy_from_slice(digits.as_bytes());
    }
}

/// A number as it fills a gap.
pub fn digits(number: u64) -> String {
    format!("{:0width$}", number % 10_u64.pow(12), width = NAME.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled() {
        let target = format!("/a/{NAME}");
        let head = format!("GET {target} HTTP/1.1\r\n\r\n");
        let body = format!("{{\"n\":\"{NAME}\",\"v\":\"{VALUE}\"}}");
        let mut call = Call::new("GET", "x", target.len(), head, &body);
        call.name(42);
        call.value(7);
        assert_eq!(call.target(), b"/a/000000000042");
        assert_eq!(call.body(), b"{\"n\":\"000000000042\",\"v\":\"000000000007\"}");
        call.value(1_000_000_000_001);
        assert_eq!(call.body(), b"{\"n\":\"000000000042\",\"v\":\"000000000001\"}");
    }
}
