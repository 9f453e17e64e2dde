//! The ConfigMap `extension-apiserver-authentication`, from which extension API servers learn how
//! to authenticate clients. Each API server of the cluster adds its certificates and headers
//! (upstream: `pkg/controlplane/controller/clusterauthenticationtrust`).

use pintle_value::{Map, Value, json};

use super::{BootstrapObject, Reconcile, Settings, object};

pub(super) fn authentication(settings: &Settings<'_>) -> Option<BootstrapObject> {
    let texts = |texts: &[&str]| json::to_string(&Value::from(texts.to_vec()));
    let mut data = Map::new();
    if let Some(authorities) = settings.client_ca {
        data.insert("client-ca-file", authorities);
    }
    if let Some(proxy) = &settings.request_header {
        data.insert("requestheader-client-ca-file", proxy.client_ca);
        data.insert("requestheader-allowed-names", texts(proxy.allowed_names));
        data.insert("requestheader-username-headers", texts(proxy.username_headers));
        data.insert("requestheader-uid-headers", texts(proxy.uid_headers));
        data.insert("requestheader-group-headers", texts(proxy.group_headers));
        data.insert("requestheader-extra-headers-prefix", texts(proxy.extra_headers_prefix));
    }
    if data.is_empty() {
        return None;
    }
    let name = "extension-apiserver-authentication";
    let mut map = object("v1", "ConfigMap", "kube-system", name);
    map.insert("data", data);
    Some(BootstrapObject::new(["", "v1", "configmaps"], Value::Object(map), Reconcile::United))
}

/// Adds the missing parts to an entry: certificates as PEM, or the items of a JSON list.
pub(super) fn united(stored: &str, wanted: &str) -> String {
    if wanted.starts_with('[') {
        return united_lists(stored, wanted);
    }
    let mut united = stored.trim_end().to_owned();
    for certificate in wanted.split_inclusive(END).map(str::trim).filter(|c| !c.is_empty()) {
        if !united.contains(certificate) {
            united.push_str(if united.is_empty() { "" } else { "\n" });
            united.push_str(certificate);
        }
    }
    if united == stored.trim_end() { stored.to_owned() } else { united + "\n" }
}

const END: &str = "-----END CERTIFICATE-----";

fn united_lists(stored: &str, wanted: &str) -> String {
    let read = |text: &str| match json::parse(text.as_bytes()) {
        Ok(Value::Array(items)) => items,
        _ => Vec::new(), // replaces a text that is not a list
    };
    let mut united = read(stored);
    let lacking = read(wanted).into_iter().filter(|item| !united.contains(item));
    let lacking: Vec<_> = lacking.collect();
    if lacking.is_empty() && !united.is_empty() {
        return stored.to_owned();
    }
    united.extend(lacking);
    json::to_string(&Value::from(united))
}

#[cfg(test)]
mod tests {
    use super::united;

    #[test]
    fn certificates_of_other_servers_stay() {
        let certificate = |name: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n")
        };
        let (a, b) = (certificate("a"), certificate("b"));
        let both = format!("{a}{b}");
        for (stored, wanted, expected) in [
            (a.as_str(), a.as_str(), a.as_str()),
            (&a, &b, &both),
            (&both, &b, &both),
            ("", &a, &a),
            (&a, &both, &both),
            (r#"["x"]"#, r#"["y"]"#, r#"["x","y"]"#),
            (r#"["x", "y"]"#, r#"["y"]"#, r#"["x", "y"]"#),
            ("[]", "[]", "[]"),
            ("broken", r#"["y"]"#, r#"["y"]"#),
        ] {
            assert_eq!(united(stored, wanted), expected, "{stored} and {wanted}");
        }
    }
}
