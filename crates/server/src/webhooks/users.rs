//! The credentials of this server for the webhooks of an admission plugin: the users of a
//! kubeconfig, by host (upstream: `AuthenticationInfoResolver`).

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Uri;
use pintle_registry::webhook::{Caller, Conversion, Endpoint, ResponseFuture};
use pintle_trace::SpanContext;
use pintle_value::{Str, Value, yaml};

use super::user::{User, text};
use super::{Sender, Webhooks};

/// The users by name: `HOST`, `HOST:PORT`, `*.DOMAIN` or `*`.
#[derive(Default)]
pub(crate) struct Users {
    by_name: HashMap<String, User>,
    /// The user of the current context, for other hosts.
    current: String,
}

impl Users {
    /// Reads the users and contexts of a kubeconfig.
    ///
    /// # Errors
    /// The error of the file or of one that it names.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|why| why.to_string())?;
        let file = yaml::parse(&bytes).map_err(|why| why.to_string())?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let list = |name| file.get(name).and_then(Value::as_array).unwrap_or_default();
        let mut by_name = HashMap::new();
        for entry in list("users") {
            let name = text(entry, "name");
            let user = User::read(entry.get("user").unwrap_or(&Value::Null), folder);
            by_name.insert(name.to_owned(), user.map_err(|why| format!("user {name:?}: {why}"))?);
        }
        let current = text(&file, "current-context");
        let context = list("contexts").iter().find(|entry| text(entry, "name") == current);
        let current = context.and_then(|entry| entry.str_at(&["context", "user"]));
        Ok(Self { by_name, current: current.unwrap_or_default().to_owned() })
    }

    /// The user for a host and a port.
    fn of(&self, host: &str, port: u16) -> Option<&User> {
        self.by_target(&format!("{host}:{port}"))
            .or_else(|| self.by_target(host).filter(|_| port == 443))
            .or_else(|| self.by_name.get("*"))
            .or_else(|| self.by_name.get(&self.current))
    }

    /// The user of that name or of the closest enclosing domain.
    fn by_target(&self, target: &str) -> Option<&User> {
        let mut domains = target.match_indices('.').map(|(dot, _)| format!("*{}", &target[dot..]));
        let exact = self.by_name.get(target);
        exact.or_else(|| domains.find_map(|domain| self.by_name.get(&domain)))
    }
}

/// Calls webhooks with the credentials of users.
pub(crate) struct WithUsers {
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) users: Users,
}

impl Caller for WithUsers {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
        timeout: Duration,
        context: Option<SpanContext>,
    ) -> ResponseFuture<'a> {
        // The call itself refuses an invalid URL.
        let uri: Option<Uri> = endpoint.url.parse().ok();
        let host = uri.as_ref().and_then(|uri| Some((uri.host()?, uri.port_u16().unwrap_or(443))));
        let user = host.and_then(|(host, port)| self.users.of(host, port));
        let sender = Sender { user: user.unwrap_or(&self.webhooks.anonymous), context };
        self.webhooks.call_as(sender, endpoint, body, timeout)
    }

    fn uid(&self) -> Str {
        self.webhooks.uid()
    }

    fn now(&self) -> Instant {
        self.webhooks.now()
    }

    fn converted(&self, conversion: &Conversion<'_>, began: Instant) {
        self.webhooks.converted(conversion, began);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream: `apiserver/pkg/util/webhook/authentication_test.go`.
    #[test]
    fn the_most_specific_user_wins() {
        let users = |names: &[&str], current: &str| Users {
            by_name: names.iter().map(|name| ((*name).to_owned(), User::anonymous())).collect(),
            current: current.to_owned(),
        };
        let all = [
            "h.ns.svc:443",
            "h.ns.svc",
            "*.ns.svc:443",
            "*.ns.svc",
            "*.svc:443",
            "*.svc",
            "*",
            "current",
        ];
        for (host, port, names, expected) in [
            ("h.ns.svc", 443, &all[..], "h.ns.svc:443"),
            ("h.ns.svc", 443, &all[1..], "*.ns.svc:443"),
            ("h.ns.svc", 443, &["h.ns.svc", "*.svc:443"], "*.svc:443"),
            ("h.ns.svc", 443, &["h.ns.svc", "*.svc"], "h.ns.svc"),
            ("h.ns.svc", 443, &["*.ns.svc", "*.svc"], "*.ns.svc"),
            ("h.ns.svc", 8443, &["h.ns.svc", "*.svc", "*"], "*"),
            ("h.ns.svc", 8443, &["h.ns.svc", "current"], "current"),
            ("127.0.0.1", 9443, &["127.0.0.1:9443", "*"], "127.0.0.1:9443"),
            ("h.ns.svc", 443, &["other", "svc"], ""),
        ] {
            let users = users(names, "current");
            let found = users.of(host, port).map_or("", |found| {
                let entry = users.by_name.iter().find(|(_, user)| std::ptr::eq(*user, found));
                entry.map_or("?", |(name, _)| name.as_str())
            });
            assert_eq!(found, expected, "{host} {port} {names:?}");
        }
    }
}
