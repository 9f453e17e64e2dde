//! The context of a span as servers pass it on: W3C Trace Context.

use std::fmt;

/// A longer `tracestate` is dropped, as the recommendation allows.
const STATE_BYTES_MAX: usize = 512;

/// Names a span of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanContext {
    pub trace_id: u128,
    pub span_id: u64,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
    /// The `tracestate`, or `""`.
    pub state: Box<str>,
}

impl SpanContext {
    /// Reads the headers `traceparent` and `tracestate`. `None` if the first is malformed: a
    /// receiver then ignores both.
    pub fn parse(parent: &[u8], state: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(parent).ok().filter(|text| text.is_ascii())?;
        let (version, rest) = (text.get(..3)?, text.get(3..)?);
        let is_latest = version == "00-";
        // A newer version may have more fields behind the flags.
        let is_newer = is_hexadecimal(&version[..2]) && &version[2..] == "-" && version != "ff-";
        let behind = rest.get(52..)?;
        if !(is_latest && behind.is_empty()
            || !is_latest && is_newer && (behind.is_empty() || behind.starts_with('-')))
        {
            return None;
        }
        let (trace, span, flags) = (rest.get(..32)?, rest.get(33..49)?, rest.get(50..52)?);
        let are_fields = [trace, span, flags].into_iter().all(is_hexadecimal);
        if !are_fields || rest.as_bytes()[32] != b'-' || rest.as_bytes()[49] != b'-' {
            return None;
        }
        let trace_id = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
        let span_id = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
        let is_sampled = u8::from_str_radix(flags, 16).ok()? & 1 != 0;
        let is_state = |text: &&str| {
            text.len() <= STATE_BYTES_MAX && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        let state = std::str::from_utf8(state).ok().filter(is_state).unwrap_or_default();
        Some(Self { trace_id, span_id, is_sampled, state: state.into() })
    }
}

/// The value of the header `traceparent`.
impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.span_id)
    }
}

/// Whether a text has lower-case hexadecimal digits only.
fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn valid_contexts_are_read_and_written() {
        for (parent, is_sampled) in [
            (VALID, true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", true),
            ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", true),
        ] {
            let context = SpanContext::parse(parent.as_bytes(), b"a=1,b=2").expect(parent);
            assert_eq!(context.is_sampled, is_sampled, "{parent}");
            assert_eq!(context.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
            assert_eq!(&*context.state, "a=1,b=2");
            assert_eq!(context.to_string()[3..52], parent[3..52]);
        }
    }

    #[test]
    fn malformed_contexts_are_ignored() {
        for parent in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "00-0af7651916cd43dd8448eb211c80319cüb7ad6b716920333-01",
            "\u{20ac}",
            "0\u{20ac}-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "+0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(SpanContext::parse(parent.as_bytes(), b""), None, "{parent}");
        }
    }

    #[test]
    fn a_state_that_is_too_long_or_no_text_is_dropped() {
        let long = "a".repeat(STATE_BYTES_MAX + 1);
        for state in [long.as_bytes(), b"a\x01", "ü".as_bytes(), b"\xff"] {
            let context = SpanContext::parse(VALID.as_bytes(), state).expect("the parent is valid");
            assert_eq!(&*context.state, "");
        }
    }
}
