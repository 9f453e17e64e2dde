//! Configuration of traces: `--tracing-config-file` (upstream: `TracingConfiguration`).

use std::path::PathBuf;

use pintle_value::Value;

use super::socket;

/// The supported versions of the file.
const VERSIONS: [&str; 5] = [
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
    "apiserver.k8s.io/v1beta1",
    "apiserver.k8s.io/v1alpha1",
];
const KIND: &str = "TracingConfiguration";
const SAMPLES_MAX: i64 = 1_000_000;
/// OTLP's default.
const DEFAULT_ENDPOINT: &str = "localhost:4317";
/// gRPC's default.
const DEFAULT_PORT: u16 = 443;

/// The export of traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// The collector.
    pub endpoint: TracingEndpoint,
    /// The number of traced requests in a million, where the client does not decide.
    pub sampling_rate_per_million: u32,
}

/// The address of a collector. The connection has no TLS, as in upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracingEndpoint {
    /// `host:port`
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Tracing {
    /// Reads a `TracingConfiguration`.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn read(document: &Value) -> Result<Self, String> {
        let text = |member| document.str_at(&[member]).unwrap_or_default();
        let (kind, version) = (text("kind"), text("apiVersion"));
        if kind != KIND || !VERSIONS.contains(&version) {
            return Err(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        let known = ["kind", "apiVersion", "endpoint", "samplingRatePerMillion"];
        let members = document.as_object().into_iter().flat_map(|members| members.iter());
        if let Some((unknown, _)) = members.into_iter().find(|(key, _)| !known.contains(&&***key)) {
            return Err(format!("unknown field {unknown:?}"));
        }
        let present = |member| document.get(member).filter(|value| !value.is_null());
        let endpoint = match present("endpoint") {
            None => DEFAULT_ENDPOINT,
            Some(value) => value.as_str().ok_or("endpoint: must be a string")?,
        };
        let rate = match present("samplingRatePerMillion") {
            None => 0,
            Some(value) => value.as_int().ok_or("samplingRatePerMillion: must be an integer")?,
        };
        Ok(Self {
            endpoint: TracingEndpoint::read(endpoint)?,
            sampling_rate_per_million: samples(rate)?,
        })
    }
}

fn samples(rate: i64) -> Result<u32, String> {
    let refuse = |why| format!("samplingRatePerMillion: Invalid value: {rate}: {why}");
    if rate < 0 {
        return Err(refuse("sampling rate must be positive"));
    }
    let rate = u32::try_from(rate).ok().filter(|_| rate <= SAMPLES_MAX);
    rate.ok_or_else(|| {
        refuse("sampling rate per million must be less than or equal to one million")
    })
}

impl TracingEndpoint {
    /// Reads gRPC's names: `host:port`, `dns:///host:port`, `unix:///path`, `unix-abstract:name`.
    fn read(endpoint: &str) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("endpoint: Invalid value: {endpoint:?}: {why}"));
        let scheme = endpoint.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            "unix" => return Ok(Self::Unix(socket(endpoint))),
            "unix-abstract" => {
                let name = &endpoint["unix-abstract:".len()..];
                return Ok(Self::Unix(format!("\0{name}").into()));
            }
            _ => {}
        }
        let authority = match endpoint.split_once("//") {
            None => endpoint,
            // A name server in front of the path is refused: only the system's resolver is used.
            Some(("dns:", rest)) => match rest.split_once('/') {
                Some(("", name)) => name,
                Some(_) => return refuse("a name server is not supported; use dns:///HOST:PORT"),
                None => rest,
            },
            Some((scheme, _)) => {
                let scheme = scheme.trim_end_matches(':');
                return refuse(&format!(
                    "unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  \
                     See https://github.com/grpc/grpc/blob/master/doc/naming.md"
                ));
            }
        };
        let parsed: Result<http::uri::Authority, _> = authority.parse();
        match parsed {
            Ok(parsed) if !parsed.host().is_empty() && !authority.contains('@') => {
                let port = match (parsed.port_u16(), authority.rsplit_once(':')) {
                    (Some(port), _) => port,
                    (None, Some((_, port))) if !port.ends_with(']') => {
                        return refuse("the port is not a number up to 65535");
                    }
                    (None, _) => DEFAULT_PORT,
                };
                Ok(Self::Tcp(format!("{}:{port}", parsed.host())))
            }
            _ => refuse("must be HOST:PORT"),
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_value::yaml;

    use super::*;

    fn read(members: &str) -> Result<Tracing, String> {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n{members}"
        );
        Tracing::read(&yaml::parse(text.as_bytes()).expect("YAML"))
    }

    #[test]
    fn endpoints_are_grpcs_names() {
        let tcp = |authority: &str| TracingEndpoint::Tcp(authority.to_owned());
        let unix = |path: &str| TracingEndpoint::Unix(path.into());
        for (members, expected) in [
            ("", tcp("localhost:4317")),
            ("endpoint: collector:4317", tcp("collector:4317")),
            ("endpoint: collector", tcp("collector:443")),
            ("endpoint: '[::1]:4317'", tcp("[::1]:4317")),
            ("endpoint: 'dns:///collector:4317'", tcp("collector:4317")),
            ("endpoint: 'dns://google.com:4317'", tcp("google.com:4317")),
            ("endpoint: 'unix:///run/otlp.sock'", unix("/run/otlp.sock")),
            ("endpoint: 'unix-abstract:otlp'", unix("\0otlp")),
        ] {
            assert_eq!(read(members).map(|read| read.endpoint), Ok(expected), "{members}");
        }
    }

    #[test]
    fn the_rate_has_bounds() {
        for (rate, expected) in [("0", 0), ("12378", 12_378), ("1000000", 1_000_000)] {
            let read = read(&format!("samplingRatePerMillion: {rate}")).expect(rate);
            assert_eq!(read.sampling_rate_per_million, expected);
        }
        assert_eq!(read("").expect("no rate").sampling_rate_per_million, 0);
    }
}
