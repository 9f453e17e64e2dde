//! Runs as `etcd`: answers the health checks of harnesses, and tells Pintle's `kube-apiserver` the
//! directory of its store.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::arguments::{Flag, is_on, value};

/// The path of the `kube-apiserver`'s request. The response is one line: `sync` or `nosync`, a
/// space, a directory.
const STORE: &str = "/pintle/store";
const HELP: &str = "\
Replaces etcd for a kube-apiserver that is Pintle, too: owns the directory of its store.

Usage: etcd [--flag=value …]

Flags:
  --data-dir DIR                  the directory of the store (default default.etcd)
  --listen-client-urls URL,…      the addresses to listen on (default http://127.0.0.1:2379)
  --unsafe-no-fsync               the kube-apiserver acknowledges writes before they are on disk
  --help, --version

Other flags of etcd are accepted and have no effect.
";
/// The limit of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The time within which a request must be sent and answered.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The time in which an `etcd` must start to listen, and the retry interval.
const START_MAX: Duration = Duration::from_secs(20);
const START_PAUSE: Duration = Duration::from_millis(20);

/// The store of a `kube-apiserver`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    pub(crate) directory: PathBuf,
    /// Whether writes are fsynced before they are acknowledged.
    pub(crate) sync: bool,
}

/// Runs until it is cancelled.
pub(crate) async fn run(flags: &[Flag]) -> anyhow::Result<()> {
    let store = Store {
        directory: std::path::absolute(value(flags, "data-dir").unwrap_or("default.etcd"))?,
        sync: !is_on(flags, "unsafe-no-fsync"),
    };
    std::fs::create_dir_all(&store.directory)
        .with_context(|| format!("--data-dir: cannot make {}", store.directory.display()))?;
    let urls = value(flags, "listen-client-urls").unwrap_or("http://127.0.0.1:2379");
    let mut listeners = Vec::new();
    for url in urls.split(',') {
        let address = address(url).context("--listen-client-urls")?;
        let listener = TcpListener::bind(address).await;
        listeners.push(listener.with_context(|| format!("cannot listen on {address}"))?);
        tracing::info!(
            "serving clients on http://{address}, data in {}",
            store.directory.display()
        );
    }
    let mut serving = tokio::task::JoinSet::new();
    for listener in listeners {
        serving.spawn(serve(listener, store.clone()));
    }
    while let Some(ended) = serving.join_next().await {
        ended??;
    }
    Ok(())
}

/// The output of `--help` and `--version`.
pub(crate) fn words(flags: &[Flag]) -> Option<String> {
    if is_on(flags, "help") || is_on(flags, "h") {
        return Some(HELP.to_owned());
    }
    let version = || format!("etcd Version: 3.6.0\nPintle: {}\n", env!("CARGO_PKG_VERSION"));
    is_on(flags, "version").then(version)
}

/// `host:port` of a URL without TLS.
pub(super) fn address(url: &str) -> anyhow::Result<&str> {
    match url.trim().strip_prefix("http://") {
        Some(rest) => Ok(rest.trim_end_matches('/')),
        None => bail!("{url}: must begin with http://"),
    }
}

async fn serve(listener: TcpListener, store: Store) -> io::Result<()> {
    loop {
        let (connection, _) = listener.accept().await?;
        let store = store.clone();
        tokio::spawn(async move {
            // A silent client does not delay others.
            let _ = tokio::time::timeout(REQUEST_TIMEOUT, converse(connection, &store)).await;
        });
    }
}

/// Serves one request.
async fn converse(mut connection: TcpStream, store: &Store) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        if connection.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let path = String::from_utf8_lossy(line).split(' ').nth(1).unwrap_or_default().to_owned();
    let (code, body) = answer(&path, store);
    let answer = format!(
        "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(answer.as_bytes()).await?;
    connection.shutdown().await
}

fn answer(path: &str, store: &Store) -> (&'static str, String) {
    match path.split('?').next().unwrap_or_default() {
        "/health" | "/readyz" | "/livez" => {
            ("200 OK", r#"{"health":"true","reason":""}"#.to_owned())
        }
        "/version" => ("200 OK", r#"{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}"#.to_owned()),
        STORE => {
            let sync = if store.sync { "sync" } else { "nosync" };
            ("200 OK", format!("{sync} {}", store.directory.display()))
        }
        _ => ("404 Not Found", "{}".to_owned()),
    }
}

/// The store of a `kube-apiserver`'s objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The embedded store, in the directory that Pintle's `etcd` names.
    Pintle(Store),
    /// A real etcd.
    Etcd,
}

/// Asks the `etcd` at one of the URLs whether it is Pintle's, and for the directory of its store.
/// Waits up to `START_MAX` until one answers, because a harness may start it last, and a member of a
/// real etcd may be down. An `https` URL is always a real etcd's, because Pintle's `etcd` has no
/// TLS.
pub(super) async fn ask(urls: &str) -> anyhow::Result<Backend> {
    let mut hosts = Vec::new();
    for url in urls.split(',') {
        if url.trim().starts_with("https://") {
            return Ok(Backend::Etcd);
        }
        hosts.push(address(url)?);
    }
    let deadline = Instant::now() + START_MAX;
    loop {
        let mut failure = anyhow::Error::msg("no URL");
        for host in &hosts {
            match tokio::time::timeout(REQUEST_TIMEOUT, converse_with(host)).await {
                Ok(Ok(backend)) => return Ok(backend),
                Ok(Err(why)) => failure = why.into(),
                Err(_) => failure = anyhow::anyhow!("no answer in {REQUEST_TIMEOUT:?}"),
            }
        }
        if Instant::now() > deadline {
            return Err(failure).with_context(|| format!("--etcd-servers: no etcd at {urls}"));
        }
        tokio::time::sleep(START_PAUSE).await;
    }
}

/// Makes the request for the store at one address.
async fn converse_with(host: &str) -> io::Result<Backend> {
    let mut connection = TcpStream::connect(host).await?;
    let request = format!("GET {STORE} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    connection.take(HEAD_BYTES_MAX as u64).read_to_end(&mut answer).await?;
    Ok(parse(&String::from_utf8_lossy(&answer)).map_or(Backend::Etcd, Backend::Pintle))
}

fn parse(answer: &str) -> Option<Store> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then_some(())?;
    let (sync, directory) = body.split_once(' ')?;
    let sync = match sync {
        "sync" => true,
        "nosync" => false,
        _ => return None,
    };
    Some(Store { directory: Path::new(directory).to_owned(), sync })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_directory_of_the_store_is_returned() {
        let store = Store { directory: "/some where".into(), sync: false };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let server = tokio::spawn(serve(listener, store.clone()));
        // A member may be down.
        for urls in [&url, &format!("http://127.0.0.1:1,{url}")] {
            let answered = ask(urls).await.expect("it answers");
            assert_eq!(answered, Backend::Pintle(store.clone()), "{urls}");
        }
        server.abort();
    }

    #[test]
    fn health_checks_of_harnesses_succeed() {
        let store = Store { directory: "/d".into(), sync: true };
        for (path, code, body) in [
            ("/health", "200 OK", r#"{"health":"true","reason":""}"#),
            ("/health?serializable=true", "200 OK", r#"{"health":"true","reason":""}"#),
            ("/pintle/store", "200 OK", "sync /d"),
            ("/v3/kv/range", "404 Not Found", "{}"),
        ] {
            assert_eq!(answer(path, &store), (code, body.to_owned()), "{path}");
        }
    }

    #[test]
    fn another_etcd_is_recognised() {
        for answer in
            ["", "HTTP/1.1 404 Not Found\r\n\r\n404 page not found", "HTTP/1.1 200 OK\r\n\r\n{}"]
        {
            assert_eq!(parse(answer), None, "{answer}");
        }
    }
}
