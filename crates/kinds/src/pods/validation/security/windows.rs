//! Options of Windows containers.

use pintle_meta::names;

use crate::{
    field::{Errors, Field},
    pods::validation::Spec,
    rules::{
        Rule::{Do, Given},
        Rules,
    },
};

const CREDENTIAL_KIB_MAX: usize = 64;
const DOMAIN_LENGTH: usize = 256;
const USER_LENGTH_MAX: usize = 104;

/// The rules for `windowsOptions` of pods and containers.
pub(super) const OPTIONS: Rules =
    &[Given("gmsaCredentialSpecName", names::dns1123_subdomain), Do(credential), Do(user_name)];

fn credential(options: &Field<'_>, errors: &mut Errors) {
    let Some(spec) = options.find("gmsaCredentialSpec") else { return };
    if spec.is_empty() {
        errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
    } else if spec.text().len() > CREDENTIAL_KIB_MAX * 1024 {
        let words = format!("gmsaCredentialSpec size must be under {CREDENTIAL_KIB_MAX} KiB");
        errors.push(spec.invalid(words));
    }
}

/// Checks a user's name: `DOMAIN\User`, or the user alone.
fn user_name(options: &Field<'_>, errors: &mut Errors) {
    let Some(name) = options.find("runAsUserName") else { return };
    let mut refuse = |words: String| errors.push(name.invalid(format!("runAsUserName{words}")));
    let text = name.text();
    if text.is_empty() {
        return refuse(" cannot be an empty string".to_owned());
    }
    if text.bytes().any(|b| b.is_ascii_control()) {
        return refuse(" cannot contain control characters".to_owned());
    }
    if text.matches('\\').count() > 1 {
        return refuse(" cannot contain more than one backslash".to_owned());
    }
    let (domain, user) = match text.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, text),
    };
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_LENGTH) {
        refuse(format!("'s Domain length must be under {DOMAIN_LENGTH} characters"));
    }
    if domain.is_some_and(|domain| !is_netbios(domain) && !is_dns(domain)) {
        refuse("'s Domain doesn't match the NetBios nor the DNS format".to_owned());
    }
    if user.is_empty() {
        refuse("'s User cannot be empty".to_owned());
    } else if user.len() > USER_LENGTH_MAX {
        refuse(format!("'s User length must not be longer than {USER_LENGTH_MAX} characters"));
    }
    if !user.is_empty() && user.bytes().all(|b| b == b'.' || b == b' ') {
        refuse("'s User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|c| r#""/\:;|=,+*?<>@[]"#.contains(c)) {
        refuse(r#"'s User cannot contain the following characters: "/\:;|=,+*?<>@[]"#.to_owned());
    }
}

fn is_netbios(domain: &str) -> bool {
    let count = domain.chars().count();
    (1..=15).contains(&count)
        && !domain.starts_with('.')
        && !domain.contains(|c| r#"\/:*?"<>|"#.contains(c))
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// Checks `hostProcess`: if one container is a process of the host, all containers must be, and the
/// pod must be on the host's network.
pub(in crate::pods::validation) fn check_host_process(spec: &Spec<'_>, errors: &mut Errors) {
    const MEMBERS: &[&str] = &["securityContext", "windowsOptions", "hostProcess"];
    let pod = spec.field.at(MEMBERS);
    let (mut count, mut on_host) = (0, 0);
    for container in spec.all_containers() {
        count += 1;
        let own = container.at(MEMBERS);
        if pod.is_set() && own.is_set() && pod.is_true() != own.is_true() {
            let words = format!(
                "pod hostProcess value must be identical if both are specified, was {}",
                pod.is_true()
            );
            errors.push(own.invalid(words));
        }
        if own.is_true() || (!own.is_set() && pod.is_true()) {
            on_host += 1;
        }
    }
    if on_host == 0 {
        return;
    }
    if on_host != count {
        let words = "If pod contains any hostProcess containers then all containers must be \
                     HostProcess containers";
        errors.push(spec.field.invalid_as("", words));
    }
    let network = spec.field.get("hostNetwork");
    if !network.is_true() {
        let words = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(network.invalid_as(false, words));
    }
}
