//! The address and the port that the server would listen on.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use pintle_server::{Config, machine_addresses};

use super::Finding;

const CHECK: &str = "port";
/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

pub(super) fn check(config: &Config, holder: Option<u32>) -> Vec<Finding> {
    let address = SocketAddr::new(config.bind_address, config.secure_port);
    let mut findings = Vec::new();
    let own = machine_addresses();
    if !address.ip().is_unspecified() && !address.ip().is_loopback() && !own.contains(&address.ip())
    {
        let all: Vec<String> = own.iter().map(ToString::to_string).collect();
        findings.push(Finding::error(
            CHECK,
            format!("--bind-address {}", address.ip()),
            "is not an address of this machine",
            format!("choose 0.0.0.0, :: or one of {}", all.join(", ")),
        ));
    }
    if address.port() == 0 {
        findings.push(Finding::ok(CHECK, address, "the server selects a free port"));
        return findings;
    }
    let Some(inode) = listener(address) else {
        findings.push(Finding::ok(CHECK, address, "is free"));
        return findings;
    };
    let owner = owner(&inode);
    findings.push(match owner {
        Some((process, _)) if Some(process) == holder => {
            let message = format!("the server listens (process {process})");
            Finding::ok(CHECK, address, message)
        }
        owner => {
            let by = match owner {
                Some((process, name)) => format!("{name} (process {process})"),
                None => "a process that this user may not see".to_owned(),
            };
            let advice =
                "stop it, or choose another --secure-port (0 selects a free one) or --bind-address";
            Finding::error(CHECK, address, format!("is in use by {by}"), advice)
        }
    });
    findings
}

/// The inode of the socket that listens on an address, or on all addresses with its port.
fn listener(address: SocketAddr) -> Option<String> {
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines().skip(1).find_map(|line| conflicting(line, address))
    })
}

/// The inode of the socket in a line of `/proc/net/tcp`, if the socket listens, so that no other
/// socket can listen on the address: `0: 0100007F:192B 00000000:0000 0A …`.
fn conflicting(line: &str, address: SocketAddr) -> Option<String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let (ip, port) = local.split_once(':')?;
    let ip = ip_of(ip)?;
    let is_same = ip.is_unspecified() || address.ip().is_unspecified() || ip == address.ip();
    let is_same = is_same && u16::from_str_radix(port, 16).ok()? == address.port();
    (is_same && *state == LISTEN).then(|| (*inode).to_owned())
}

/// Parses an address of `/proc/net/tcp`: words of 32 bits in the machine's byte order.
fn ip_of(hexadecimal: &str) -> Option<IpAddr> {
    let words = hexadecimal.as_bytes().chunks(8).map(|word| {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        Some(word.to_ne_bytes())
    });
    let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

/// The process that has a socket open, and its name, if this user may see it.
fn owner(inode: &str) -> Option<(u32, String)> {
    let socket = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |id: &u32| {
        let files = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link.as_os_str() == socket.as_str())
    };
    let id = ids.into_iter().find(has_it)?;
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    Some((id, name.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_listening_socket_is_found_by_its_address_and_port() {
        const REST: &str = "00000000:00000000 00:00000000 00000000 0 0 4711 1";
        for (local, state, address, expected) in [
            ("0100007F:192B", "0A", "127.0.0.1:6443", true),
            ("0100007F:192B", "01", "127.0.0.1:6443", false),
            ("0100007F:192B", "0A", "127.0.0.1:6444", false),
            ("0100007F:192B", "0A", "192.0.2.1:6443", false),
            ("0100007F:192B", "0A", "0.0.0.0:6443", true),
            ("00000000:192B", "0A", "127.0.0.1:6443", true),
            ("00000000000000000000000001000000:192B", "0A", "[::1]:6443", true),
            ("nonsense", "0A", "[::1]:6443", false),
        ] {
            let line = format!("0: {local} 00000000:0000 {state} {REST}");
            let found = conflicting(&line, address.parse().expect("an address"));
            assert_eq!(found.as_deref(), expected.then_some("4711"), "{local} {address}");
        }
    }
}
