//! The behaviour of hostile clients, as data.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::frames::{self, Kind};

/// The rows of `siege.yaml`.
pub(super) fn all() -> Result<Vec<Row>> {
    serde_saphyr::from_str(include_str!("../../siege.yaml")).context("siege.yaml")
}

/// A kind of hostile client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) peer: String,
    pub(super) speaks: Protocol,
    #[serde(rename = "as", default)]
    pub(super) identity: Identity,
    /// The share of the campaign's connections, in percent.
    #[serde(default = "hundred")]
    of: usize,
    #[serde(default)]
    pub(super) steps: Vec<Step>,
    #[serde(default)]
    pub(super) again: Vec<Step>,
    #[serde(default)]
    pub(super) flood: bool,
    #[serde(default)]
    pub(super) closed: bool,
}

fn hundred() -> usize {
    100
}

fn one() -> usize {
    1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Tcp,
    Tls,
    Http1,
    Http2,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Identity {
    #[default]
    Anonymous,
    Nobody,
    Insider,
}

/// Bytes to send, and how often. Exactly one member besides `times` is set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    text: Option<String>,
    hex: Option<String>,
    settings: Option<Settings>,
    frame: Option<RawFrame>,
    request: Option<RequestFrame>,
    #[serde(default = "one")]
    times: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Settings {
    initial_window_size: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFrame {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    stream: u32,
    /// The payload as hexadecimal digits.
    #[serde(default)]
    hex: String,
    /// The length of a payload of zeros.
    #[serde(default)]
    bytes: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RequestFrame {
    #[serde(default = "get")]
    method: String,
    path: String,
    /// The part that never ends.
    unended: Option<Unended>,
    /// Whether the stream is reset at once.
    #[serde(default)]
    reset: bool,
    /// The length of a header's value.
    #[serde(default)]
    header_bytes: usize,
    /// How many references to the header follow it; 0 means that there is no header.
    #[serde(default)]
    header_times: usize,
}

fn get() -> String {
    "GET".to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unended {
    Headers,
    Body,
}

/// The values of `$collection` and `$authorization`.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) collection: String,
    pub(super) token: Option<String>,
}

impl Row {
    /// The number of connections in a campaign with `campaign` connections per row.
    pub(super) fn connections(&self, campaign: usize) -> usize {
        (campaign * self.of / 100).max(1)
    }
}

impl Step {
    /// The bytes to send; `stream` is the next stream's number.
    pub(super) fn bytes(&self, names: &Names, stream: &mut u32) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for _ in 0..self.times {
            match self {
                Self { text: Some(text), .. } => out.extend(names.fill(text).into_bytes()),
                Self { hex: Some(hex), .. } => out.extend(unhex(hex)?),
                Self { settings: Some(Settings { initial_window_size }), .. } => {
                    const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
                    let size = initial_window_size.to_be_bytes();
                    let setting = [&INITIAL_WINDOW_SIZE[..], &size].concat();
                    frames::frame(Kind::Settings, 0, 0, &setting, &mut out);
                }
                Self { frame: Some(raw), .. } => {
                    let mut payload = unhex(&raw.hex)?;
                    payload.resize(payload.len().max(raw.bytes), 0);
                    frames::frame(raw.kind, 0, raw.stream, &payload, &mut out);
                }
                Self { request: Some(request), .. } => request.write(names, stream, &mut out),
                _ => bail!("a step sends nothing"),
            }
        }
        Ok(out)
    }
}

impl RequestFrame {
    fn write(&self, names: &Names, stream: &mut u32, out: &mut Vec<u8>) {
        let path = names.fill(&self.path);
        let pseudo = [(":method", self.method.as_str()), (":path", &path), (":scheme", "https")];
        let mut block = Vec::new();
        for (name, value) in pseudo.into_iter().chain([(":authority", "siege")]) {
            frames::header(name, value, &mut block);
        }
        if let Some(token) = &names.token {
            frames::header("authorization", &format!("Bearer {token}"), &mut block);
        }
        if self.header_times > 0 {
            frames::repeated_header("x", &"x".repeat(self.header_bytes), &mut block);
            block.resize(block.len() + self.header_times, frames::NEWEST_HEADER);
        }
        let mut flags = frames::END_HEADERS | frames::END_STREAM;
        match self.unended {
            None => {}
            Some(Unended::Headers) => flags = 0,
            Some(Unended::Body) => flags = frames::END_HEADERS,
        }
        frames::frame(Kind::Headers, flags, *stream, &block, out);
        if self.reset {
            const CANCEL: [u8; 4] = [0, 0, 0, 8];
            frames::frame(Kind::RstStream, 0, *stream, &CANCEL, out);
        }
        *stream += 2;
    }
}

impl Names {
    fn fill(&self, text: &str) -> String {
        let authorization =
            self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        text.replace("$collection", &self.collection)
            .replace("$authorization", &authorization.unwrap_or_default())
    }
}

fn unhex(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).context("hex")?;
        u8::from_str_radix(pair, 16).with_context(|| format!("hex {pair:?}"))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_sends_bytes() {
        for row in all().unwrap() {
            let mut stream = 1;
            for step in row.steps.iter().chain(&row.again) {
                let bytes = step.bytes(&Names::default(), &mut stream).unwrap();
                assert!(!bytes.is_empty(), "{}", row.peer);
            }
        }
    }
}
