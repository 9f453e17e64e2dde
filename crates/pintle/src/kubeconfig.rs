//! `pintle kubeconfig`: prints the administrator's kubeconfig for clients elsewhere.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::Args;

/// Print the administrator's kubeconfig, also for clients that reach the server under another URL
///
///   pintle kubeconfig --server https://pintle.example:6443
///   docker exec pintle /pintle kubeconfig /data/admin.kubeconfig >pintle.kubeconfig
///
/// The server's certificate must name the host: see `pintle serve --tls-san`.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Kubeconfig {
    /// The kubeconfig that the server wrote
    #[arg(value_name = "FILE", default_value = ".pintle/admin.kubeconfig")]
    file: PathBuf,
    /// The URL under which the clients reach the server [default: as in the file]
    #[arg(long, value_name = "URL", value_parser = url)]
    server: Option<String>,
}

impl Kubeconfig {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let path = self.file.display();
        let text = std::fs::read_to_string(&self.file).with_context(|| path.to_string())?;
        let text = match &self.server {
            Some(url) => with_server(&text, url),
            None => Some(text),
        };
        let text = text.with_context(|| format!("{path}: has no line `server: …`"))?;
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}

/// Replaces the URL of the server; `None` if there is none.
fn with_server(text: &str, url: &str) -> Option<String> {
    let line = text.lines().find(|line| line.trim_start().starts_with("server: "))?;
    let (indentation, _) = line.split_once("server: ")?;
    Some(text.replacen(line, &format!("{indentation}server: {url}"), 1))
}

/// Parses the URL of a server: a host, maybe a port and a path, nothing that YAML reads otherwise.
fn url(text: &str) -> anyhow::Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:[]".contains(&byte);
    let host = text.strip_prefix("https://").unwrap_or_default();
    ensure!(
        !host.is_empty()
            && !host.starts_with([':', '/'])
            && host.bytes().all(is_plain)
            && !host.ends_with(':'),
        "must be a URL such as https://pintle.example:6443"
    );
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_url_of_the_server_is_replaced() {
        let text = "clusters:\n- cluster:\n    certificate-authority-data: YQ==\n    server: https://127.0.0.1:6443\n  name: pintle\n";
        let replaced = with_server(text, "https://pintle.shop.svc:6443").expect("a server");
        assert_eq!(replaced, text.replace("127.0.0.1", "pintle.shop.svc"));
        assert_eq!(with_server("kind: Config\n", "https://a"), None);
    }

    #[test]
    fn urls_are_checked() {
        for good in ["https://a", "https://10.0.0.1:6443", "https://[::1]:6443", "https://a.b/c"] {
            assert!(url(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a",
            "http://a",
            "https://",
            "https://:6443",
            "https://a:",
            "https://a b",
            "https://a\nb",
        ] {
            assert!(url(bad).is_err(), "{bad:?}");
        }
    }
}
