//! The server's identity among the servers of its cluster. The server's name is made of the host
//! name, so a restarted server has the same name.

use std::net::SocketAddr;

use pintle_auth::token::PublicKey;
use pintle_controllers::identity::Identity;
use pintle_meta::uid;
use pintle_value::{Str, Value, json};
use sha2::{Digest, Sha256};

use crate::machine::{hostname, random};

/// A digest of what all servers of a cluster must share: CAs and service account keys.
pub(crate) fn keys(authorities: &str, keys: &[PublicKey]) -> Str {
    let mut hash = Sha256::new_with_prefix(authorities);
    let mut keys: Vec<_> = keys.iter().map(|key| Value::from(key.web_key())).collect();
    keys.sort_by_cached_key(json::to_string);
    keys.iter().for_each(|key| hash.update(json::to_string(key)));
    base32(&hash.finalize()[..16]).into()
}

/// The server's identity. `keys` is the digest of its keys, if other servers may exist.
pub(crate) fn identity(address: SocketAddr, keys: Option<Str>) -> Identity {
    let hostname = hostname();
    let name = name(&hostname);
    let mut bytes = [0; 16];
    random(&mut bytes);
    let holder = format!("{name}_{}", uid::format(bytes)).into();
    Identity {
        name: name.into(),
        holder,
        hostname: hostname.into(),
        address: address.to_string().into(),
        keys,
    }
}

/// The server's name.
pub(crate) fn own_name() -> String {
    name(&hostname())
}

/// `apiserver-` and half of the host name's hash, as upstream makes it.
fn name(hostname: &str) -> String {
    let hash = Sha256::digest(hostname.as_bytes());
    format!("apiserver-{}", base32(&hash[..16]))
}

/// Base32 of RFC 4648 in lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bit = |i: usize| bytes.get(i / 8).is_some_and(|byte| (byte >> (7 - i % 8)) & 1 == 1);
    let digit = |at: usize| (at..at + 5).fold(0, |digit, i| (digit << 1) | usize::from(bit(i)));
    (0..bytes.len() * 8).step_by(5).map(|at| char::from(DIGITS[digit(at)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_rfc() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "my"),
            ("fo", "mzxq"),
            ("foo", "mzxw6"),
            ("foob", "mzxw6yq"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), expected, "{bytes}");
        }
    }

    #[test]
    fn a_name_is_made_of_the_machines() {
        let expected = "apiserver-c4vwjftbvpc5os2vvzle4qg27a";
        assert_eq!(name("kind-control-plane"), expected);
    }
}
