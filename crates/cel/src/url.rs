//! Parses URLs as Go does, with its errors.

use std::net::IpAddr;

use pintle_meta::quote::quote;

use crate::address;

/// A URL in its parts.
#[derive(Clone, Debug, Default)]
pub struct Url {
    pub(crate) scheme: String,
    /// The text after the scheme, if no slash follows.
    opaque: String,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) host: String,
    path: Vec<u8>,
    /// The original path, if encoding would not reproduce it.
    path_written: Option<String>,
    query: Option<String>,
    fragment: Option<String>,
    /// Whether a path follows the scheme without `//`.
    without_host: bool,
}

/// The part of a URL that contains a text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

/// Parses a URL as in a request line.
pub(crate) fn parse_request(text: &str) -> Result<Url, String> {
    parse(text, true).map_err(|error| format!("parse {}: {error}", quote(text)))
}

/// Parses a URL or a reference.
pub(crate) fn parse_reference(text: &str) -> Result<Url, String> {
    let (before, fragment) = match text.split_once('#') {
        Some((before, fragment)) => (before, Some(fragment)),
        None => (text, None),
    };
    let mut url =
        parse(before, false).map_err(|error| format!("parse {}: {error}", quote(before)))?;
    if let Some(fragment) = fragment.filter(|f| !f.is_empty()) {
        unescape(fragment, Part::Fragment)
            .map_err(|error| format!("parse {}: {error}", quote(text)))?;
        url.fragment = Some(fragment.to_owned());
    }
    Ok(url)
}

fn parse(text: &str, request: bool) -> Result<Url, String> {
    let wrong = |what: &str| Err(what.to_owned());
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return wrong("net/url: invalid control character in URL");
    }
    if text.is_empty() && request {
        return wrong("empty url");
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_lowercase();
    let mut rest = match rest.split_once('?') {
        Some((rest, query)) => {
            url.query = Some(query.to_owned());
            rest
        }
        None => rest,
    };
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if request {
            return wrong("invalid URI for request");
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return wrong("first path segment in URL cannot contain colon");
        }
    }
    let has_scheme = !url.scheme.is_empty();
    match rest.strip_prefix("//") {
        Some(authority) if has_scheme || (!request && !rest.starts_with("///")) => {
            let end = authority.find('/').unwrap_or(authority.len());
            url.set_authority(&authority[..end])?;
            rest = &authority[end..];
        }
        _ => url.without_host = has_scheme && rest.starts_with('/'),
    }
    url.path = unescape(rest, Part::Path)?;
    if escape(&url.path, Part::Path) != rest {
        url.path_written = Some(rest.to_owned());
    }
    Ok(url)
}

/// Splits off the scheme, if there is one.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

impl Url {
    /// Parses a URL.
    ///
    /// # Errors
    /// Go's error message.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse_reference(text)
    }

    /// Whether the text is an absolute URL or path, as in a request line.
    pub fn is_request(text: &str) -> bool {
        parse(text, true).is_ok()
    }

    /// The scheme in lower case; `""` if there is none.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host, with its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The user information, escaped; `None` if it has none.
    pub fn user(&self) -> Option<String> {
        let (name, password) = self.user.as_ref()?;
        let escaped = |text: &[u8]| escape(text, Part::User);
        Some(match password {
            None => escaped(name),
            Some(password) => format!("{}:{}", escaped(name), escaped(password)),
        })
    }

    /// Whether it has user information.
    pub const fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// The query, as written.
    pub fn written_query(&self) -> &str {
        self.query.as_deref().unwrap_or_default()
    }

    /// The fragment.
    pub fn fragment(&self) -> &str {
        self.fragment.as_deref().unwrap_or_default()
    }

    /// About the length of its text.
    pub(crate) fn length(&self) -> usize {
        let optional = |part: &Option<String>| part.as_ref().map_or(0, String::len);
        let user = self
            .user
            .as_ref()
            .map_or(0, |(name, password)| name.len() + password.as_ref().map_or(0, Vec::len));
        let whole = [&self.scheme, &self.opaque, &self.host].map(String::len).iter().sum::<usize>();
        let parts = [&self.path_written, &self.query, &self.fragment].map(optional);
        whole + user + self.path.len() + parts.iter().sum::<usize>()
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), String> {
        let Some((user, host_part)) = authority.rsplit_once('@') else {
            self.host = host(&self.scheme, authority)?;
            return Ok(());
        };
        self.host = host(&self.scheme, host_part)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(allowed) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        self.user = Some(match user.split_once(':') {
            Some((name, password)) => {
                (unescape(name, Part::User)?, Some(unescape(password, Part::User)?))
            }
            None => (unescape(user, Part::User)?, None),
        });
        Ok(())
    }

    /// The host without port and brackets.
    pub(crate) fn hostname(&self) -> &str {
        let (host, _) = split_port(&self.host);
        host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
    }

    pub(crate) fn port(&self) -> &str {
        split_port(&self.host).1
    }

    /// The escaped path, as written if possible.
    pub(crate) fn escaped_path(&self) -> String {
        if let Some(written) = self.path_written.as_ref().filter(|w| is_encoded(w)) {
            return written.clone();
        }
        if self.path == b"*" {
            return "*".to_owned();
        }
        escape(&self.path, Part::Path)
    }

    /// The names and values of the query, in order; invalid ones are skipped.
    pub(crate) fn query(&self) -> Vec<(String, String)> {
        let query = self.query.as_deref().unwrap_or("");
        let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let read = |text: &str| {
            let bytes = unescape(text, Part::Query).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        pairs
            .filter_map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((read(name)?, read(value)?))
            })
            .collect()
    }
}

fn split_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
        _ => (host, ""),
    }
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

fn host(scheme: &str, text: &str) -> Result<String, String> {
    let check_port = |port: &str| match is_port(port) {
        true => Ok(()),
        false => Err(format!("invalid port {} after host", quote(port))),
    };
    let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match text.rfind('[') {
        Some(0) => {}
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {
            if let Some(first) = text.find(':') {
                let web = matches!(scheme, "http" | "https");
                let at = if web { first } else { text.rfind(':').unwrap_or(first) };
                check_port(&text[at..])?;
            }
            return Ok(lossy(unescape(text, Part::Host)?));
        }
    }
    let close = text.rfind(']').ok_or("missing ']' in host")?;
    let port = &text[close + 1..];
    check_port(port)?;
    let port = lossy(unescape(port, Part::Host)?);
    let name = &text[1..close];
    let name = match name.find("%25") {
        Some(at) => {
            let mut bytes = unescape(&name[..at], Part::Host)?;
            bytes.extend(unescape(&name[at..], Part::Zone)?);
            lossy(bytes)
        }
        None => lossy(unescape(name, Part::Host)?),
    };
    match address::parse(&name) {
        Err(error) => Err(format!("invalid host: {error}")),
        Ok(address::Parsed { ip: IpAddr::V4(_), .. }) => Err("invalid IP-literal".to_owned()),
        Ok(_) => Ok(format!("[{name}]{port}")),
    }
}

/// Whether a byte must be escaped.
fn must_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return false;
    }
    let allowed: &[u8] = match part {
        Part::Path => b"$&+/:;=@,",
        Part::Host | Part::Zone => b"!$&'()*+,;=:[]<>\"",
        Part::User => b"$&+,;=",
        Part::Query => b"",
        Part::Fragment => b"$&+/:;=@,?!()*",
    };
    !allowed.contains(&byte)
}

/// Whether a path is validly encoded as written.
fn is_encoded(text: &str) -> bool {
    text.bytes().all(|b| b"!$&'()*+,;=:@[]%".contains(&b) || !must_escape(b, Part::Path))
}

fn escape(bytes: &[u8], part: Part) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if must_escape(*byte, part) {
            out.push_str(&format!("%{byte:02X}"));
        } else {
            out.push(char::from(*byte));
        }
    }
    out
}

fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    let in_host = matches!(part, Part::Host | Part::Zone);
    while let Some(byte) = bytes.get(at) {
        if *byte == b'%' {
            let digits = bytes.get(at + 1..at + 3).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
            let shown = &bytes[at..bytes.len().min(at + 3)];
            let wrong = || {
                let shown = String::from_utf8_lossy(shown);
                Err(format!("invalid URL escape {}", quote(&shown)))
            };
            let Some(digits) = digits else { return wrong() };
            let digit = |d: u8| char::from(d).to_digit(16).unwrap_or(0) as u8;
            let value = digit(digits[0]) << 4 | digit(digits[1]);
            let percent = digits == b"25";
            if part == Part::Host && value < 0x80 && !percent {
                return wrong();
            }
            if part == Part::Zone && !percent && value != b' ' && must_escape(value, Part::Host) {
                return wrong();
            }
            out.push(value);
            at += 3;
            continue;
        }
        if in_host && byte.is_ascii() && must_escape(*byte, part) {
            let shown = char::from(*byte).to_string();
            return Err(format!("invalid character {} in host name", quote(&shown)));
        }
        out.push(if *byte == b'+' && part == Part::Query { b' ' } else { *byte });
        at += 1;
    }
    Ok(out)
}

/// Displays the URL as Go does.
impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let has_host = !self.host.is_empty() || self.user.is_some();
            let path = self.escaped_path();
            if has_host || (!self.scheme.is_empty() && !self.without_host) {
                if has_host || !path.is_empty() {
                    f.write_str("//")?;
                }
                if let Some((name, password)) = &self.user {
                    f.write_str(&escape(name, Part::User))?;
                    if let Some(password) = password {
                        write!(f, ":{}", escape(password, Part::User))?;
                    }
                    f.write_str("@")?;
                }
                f.write_str(&escape(self.host.as_bytes(), Part::Host))?;
            }
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                f.write_str("/")?;
            }
            f.write_str(&path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if let Some(fragment) = &self.fragment {
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}
