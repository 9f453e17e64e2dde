//! Validates base64 text and makes it canonical as Go's `base64.StdEncoding` would, without
//! decoding it.

use std::borrow::Cow;

use crate::Error;

/// Returns the text to which the decoded bytes would be encoded. Go's decoder ignores line ends and
/// the unused bits of the last character.
pub fn canonical(text: &str) -> Result<Cow<'_, str>, Error> {
    let bytes = text.as_bytes();
    // The number of characters read of the current group of four.
    let mut held = 0;
    let mut broken = false;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' | b'\r' => broken = true,
            b'=' => {
                check_padding(bytes, at, held)?;
                return Ok(without_spare(text, at, held));
            }
            _ if symbol(byte).is_some() => held = (held + 1) % 4,
            _ => return Err(Error::Base64(at)),
        }
    }
    match held {
        0 if broken => Ok(text.replace(['\n', '\r'], "").into()),
        0 => Ok(text.into()),
        _ => Err(Error::Base64(bytes.len() - held)),
    }
}

/// Checks the text from the first `=` on, after `held` characters of a group.
fn check_padding(bytes: &[u8], at: usize, held: usize) -> Result<(), Error> {
    let after_lines = |from: usize| {
        let rest = bytes[from..].iter().position(|byte| !matches!(byte, b'\n' | b'\r'));
        rest.map_or(bytes.len(), |len| from + len)
    };
    let mut next = after_lines(at + 1);
    match held {
        0 | 1 => return Err(Error::Base64(at)),
        2 => {
            match bytes.get(next) {
                None => return Err(Error::Base64(bytes.len())),
                Some(b'=') => {}
                Some(_) => return Err(Error::Base64(next - 1)),
            }
            next = after_lines(next + 1);
        }
        _ => {}
    }
    if next < bytes.len() { Err(Error::Base64(next)) } else { Ok(()) }
}

/// Returns the text on one line, with the unused bits before its padding (at `at`) cleared.
fn without_spare(text: &str, at: usize, held: usize) -> Cow<'_, str> {
    let used = if held == 2 { 0b11_0000 } else { 0b11_1100 };
    let last = text[..at].trim_end_matches(['\n', '\r']).len() - 1;
    let value = symbol(text.as_bytes()[last]).unwrap_or_default();
    if value & !used == 0 && !text.contains(['\n', '\r']) {
        return text.into();
    }
    let mut canonical = text[..last].replace(['\n', '\r'], "");
    canonical.push(char::from(ALPHABET[usize::from(value & used)]));
    canonical.push_str(if held == 2 { "==" } else { "=" });
    canonical.into()
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const fn symbol(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
