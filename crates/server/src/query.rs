//! Parses a URL's query as Go's `url.ParseQuery` does: `+` is a space, and a pair with a `;` or an
//! invalid encoding is dropped.

use std::borrow::Cow;

use crate::header_text::lossy;

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Parses the text behind the `?`.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((decode_plus(key)?, decode_plus(value)?))
            })
            .collect();
        Self { pairs }
    }

    /// The first value of a parameter; `None` if it is absent.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter; `""` if it is absent.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Encodes the parameters sorted by name, as Go's `url.Values.Encode` does.
    pub(crate) fn sorted(&self) -> String {
        let mut pairs: Vec<&(String, String)> = self.pairs.iter().collect();
        pairs.sort_by_key(|(key, _)| key); // the sort is stable: values of one name keep their order
        let encode = |text| percent_encode(text).replace("%20", "+");
        let pairs = pairs.into_iter().map(|(k, v)| format!("{}={}", encode(k), encode(v)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// Whether the parameter is present, with any value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }
}

fn decode_plus(text: &str) -> Option<String> {
    if text.contains('+') {
        percent_decode(&text.replace('+', " ")).map(Cow::into_owned)
    } else {
        percent_decode(text).map(Cow::into_owned)
    }
}

/// Decodes `%xx`; `None` for an invalid escape. Bytes that are not UTF-8 become U+FFFD.
pub(crate) fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (hex(rest.next()?)?, hex(rest.next()?)?);
            bytes.push(high << 4 | low);
        } else {
            bytes.push(byte);
        }
    }
    Some(Cow::Owned(lossy(&bytes).into_owned()))
}

fn hex(digit: u8) -> Option<u8> {
    // A hexadecimal digit is less than 16.
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Percent-encodes a parameter's value.
pub(crate) fn percent_encode(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    out
}

/// Percent-encodes a path as Go does.
pub(crate) fn encode_path(path: &str) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let pairs = Query::parse(text).pairs;
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(pairs, expected, "{text}");
    }

    #[test]
    fn pairs_are_decoded_and_invalid_ones_dropped() {
        check("", &[]);
        check("watch", &[("watch", "")]);
        check("a=1&&b=2", &[("a", "1"), ("b", "2")]);
        check("a=1&a=2", &[("a", "1"), ("a", "2")]);
        check("labelSelector=app%20in+%28a%2Cb%29", &[("labelSelector", "app in (a,b)")]);
        check("a=b=c", &[("a", "b=c")]);
        check("a=%zz&b=%2&c=%", &[]);
        check("a;b=1&c=2", &[("c", "2")]);
        check("a=%ff", &[("a", "\u{fffd}")]);
        check("a=%C3%A4", &[("a", "ä")]);
    }

    #[test]
    fn parameters_are_sorted_by_name_alone() {
        let sorted = |text| Query::parse(text).sorted();
        assert_eq!(sorted("b=2&a=z&a=y%20x&c&%zz=1"), "a=z&a=y+x&b=2&c=");
        assert_eq!(sorted(""), "");
    }

    #[test]
    fn encoding_round_trips() {
        for text in ["", "plain", "a b&c=d;e%", "ä/\"\u{1f600}"] {
            assert_eq!(percent_decode(&percent_encode(text)).unwrap(), text);
        }
    }
}
