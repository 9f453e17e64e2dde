//! As `kube-apiserver`: its command line, read leniently, becomes that of `pintle serve`.
//!
//! What `pintle serve` has under the same name is taken over. What it lacks is warned about and left out,
//! under this name only, since a harness cannot be told to leave it out; but what protects somebody keeps
//! the server from starting.

mod absent;

use std::path::Path;

use absent::Absence;
use anyhow::bail;
use clap::{ArgAction, Command, CommandFactory};
use pintle_server::{FeatureGates, RuntimeConfig, RuntimeConfigError};

use super::arguments::{Flag, is_on, value};
use super::etcd::{self, Backend};
use crate::flags::Pintle;

/// What kube-apiserver does without these flags, where `pintle serve` does something else. The delay is
/// for tests that finalize namespaces themselves; kube-controller-manager leaves them five seconds.
const DEFAULTS: &[(&str, &str)] = &[
    ("bind-address", "0.0.0.0"),
    ("authorization-mode", "AlwaysAllow"),
    ("namespace-deletion-delay", "300ms"),
];

/// What is for an etcd that keeps the objects itself.
const ETCD_FLAGS: [&str; 11] = [
    "etcd-servers",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "etcd-prefix",
    "etcd-compaction-interval",
    "etcd-healthcheck-timeout",
    "etcd-readycheck-timeout",
    "etcd-db-metric-poll-interval",
    "lease-reuse-duration-seconds",
    "storage-media-type",
];

/// Where kube-apiserver makes certificates without `--cert-dir`.
const CERT_DIR: &str = "/var/run/kubernetes";

/// What a harness that wants no service accounts does not expect in its namespaces: its tests count what is
/// in them.
const WITHOUT_ACCOUNTS: &str =
    "*,-serviceaccount-controller,-root-ca-certificate-publisher-controller";

/// The command line for `pintle serve`, and what to warn about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Translation {
    pub(crate) arguments: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// What `--help` and `--version` print.
pub(crate) fn words(flags: &[Flag]) -> Option<String> {
    if is_on(flags, "help") || is_on(flags, "h") {
        let mut command = serve().name("kube-apiserver").bin_name("kube-apiserver");
        return Some(format!("{}", command.render_long_help()));
    }
    is_on(flags, "version").then(|| format!("Kubernetes {}\n", pintle_server::KUBERNETES_VERSION))
}

/// Translates a command line; asks the etcd that it names where the store lies, if it is pintle's.
pub(crate) async fn translate(flags: &[Flag]) -> anyhow::Result<Translation> {
    let mut translation = rewrite(flags, &serve(), false)?; // before it waits for an etcd
    let backend = match value(flags, "etcd-servers").and_then(|urls| urls.split(',').next()) {
        Some(url) => Some(etcd::ask(url).await?),
        None => None,
    };
    if backend == Some(Backend::Etcd) {
        if let Some(overrides) = value(flags, "etcd-servers-overrides") {
            bail!(
                "--etcd-servers-overrides={overrides}: not implemented yet; what other servers keep in \
                 those etcds would not be found"
            );
        }
        translation = rewrite(flags, &serve(), true)?;
    }
    let mut add = |flag: &str| translation.arguments.push(flag.to_owned());
    match backend {
        None => add("--ephemeral"),
        // There are certificates and the administrator's kubeconfig in it, and no objects.
        Some(Backend::Etcd) => {
            let directory = value(flags, "cert-dir").unwrap_or(CERT_DIR);
            add(&format!("--data-dir={directory}"));
        }
        Some(Backend::Pintle(store)) => {
            let data_dir = store.directory.join(subdirectory(flags));
            add(&format!("--data-dir={}", data_dir.display()));
            if !store.sync {
                add("--unsafe-no-fsync");
            }
        }
    }
    Ok(translation)
}

/// Where a store lies within what an etcd keeps: servers with other prefixes see nothing of one another.
fn subdirectory(flags: &[Flag]) -> String {
    let prefix = value(flags, "etcd-prefix").unwrap_or("/registry").trim_matches('/');
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    match prefix {
        "registry" | "" => "pintle".to_owned(),
        other => format!("pintle-{}", other.chars().map(plain).collect::<String>()),
    }
}

fn serve() -> Command {
    let mut command = Pintle::command();
    command.build();
    command.find_subcommand("serve").cloned().unwrap_or(command)
}

/// The flags that `serve` knows, and the others as warnings; or why there must be no server. Those about
/// etcd are for one that keeps the objects itself.
fn rewrite(flags: &[Flag], serve: &Command, has_etcd: bool) -> anyhow::Result<Translation> {
    let mut translation = Translation::default();
    let (mut missing, mut unknown) = (Vec::new(), Vec::new());
    let mut flags = with_defaults(flags);
    take_certificate(&mut flags, Path::is_file);
    for (name, is_known) in LISTS_OF_THE_TIME {
        keep_known(&mut flags, name, is_known, &mut translation.warnings);
    }
    for (index, flag @ Flag { name, .. }) in flags.iter().enumerate() {
        if !has_etcd && ETCD_FLAGS.contains(&name.as_str()) {
            continue;
        }
        let known = serve.get_arguments().find(|argument| argument.get_long() == Some(name));
        let Some(argument) = known else {
            match absent::absence(flag) {
                Absence::Harmless => {
                    let warning = format!("--{name} means nothing here and is left out");
                    translation.warnings.push(warning);
                }
                Absence::Protects => missing.push(shown(flag)),
                Absence::Unknown => unknown.push(format!("--{name}")),
            }
            continue;
        };
        let repeats = matches!(argument.get_action(), ArgAction::Append);
        if !repeats && flags[index + 1..].iter().any(|later| later.name == *name) {
            continue; // the last one counts
        }
        translation.arguments.push(shown(flag));
    }
    if !unknown.is_empty() {
        bail!("unknown flags: {}", unknown.join(", "));
    }
    if !missing.is_empty() {
        bail!(
            "{}: not implemented yet, so that what it is to protect would not be protected; leave it out to \
             start without that protection",
            missing.join(", ")
        );
    }
    translation.warnings.sort();
    translation.warnings.dedup();
    Ok(translation)
}

/// A flag as it stands on a command line.
fn shown(Flag { name, value }: &Flag) -> String {
    match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    }
}

fn with_defaults(flags: &[Flag]) -> Vec<Flag> {
    let said = |name: &str| flags.iter().any(|flag| flag.name == name);
    let is_elsewhere = |name: &str| name == "authorization-mode" && said("authorization-config");
    let defaults = DEFAULTS.iter().filter(|(name, _)| !said(name) && !is_elsewhere(name));
    let defaults = defaults.map(|(name, value)| flag(name, value));
    let without_accounts = flags
        .iter()
        .filter(|flag| flag.name == "disable-admission-plugins" && !said("controllers"))
        .filter_map(|flag| flag.value.as_deref())
        .any(|plugins| plugins.split(',').any(|plugin| plugin == "ServiceAccount"));
    let controllers = without_accounts.then(|| flag("controllers", WITHOUT_ACCOUNTS));
    // A short flag of one letter is a long one here: -v=4.
    flags.iter().cloned().chain(defaults).chain(controllers).collect()
}

/// A pair in `--cert-dir` is the serving certificate, whoever made it (upstream: PairName "apiserver").
/// Where there is none, we make it there.
fn take_certificate(flags: &mut Vec<Flag>, exists: impl Fn(&Path) -> bool) {
    if value(flags, "tls-cert-file").is_some() {
        return flags.retain(|flag| flag.name != "cert-dir");
    }
    let Some(directory) = value(flags, "cert-dir").map(Path::new) else { return };
    let (certificate, key) = (directory.join("apiserver.crt"), directory.join("apiserver.key"));
    if exists(&certificate) && exists(&key) {
        flags.retain(|flag| flag.name != "cert-dir");
        flags.push(flag("tls-cert-file", &certificate.to_string_lossy()));
        flags.push(flag("tls-private-key-file", &key.to_string_lossy()));
    }
}

/// Whether an entry of a list is known.
type IsKnown = fn(&str) -> bool;

/// Flags whose lists name what there is in one release and not in another, and what tells whether an entry
/// is known here.
const LISTS_OF_THE_TIME: [(&str, IsKnown); 2] = [
    ("feature-gates", |gate| FeatureGates::parse([gate]).is_ok()),
    ("runtime-config", |setting| {
        let read = RuntimeConfig::parse([setting]);
        !matches!(read, Err(RuntimeConfigError::Group(_) | RuntimeConfigError::Version(_)))
    }),
];

/// Leaves out the entries of a list that are not known here.
fn keep_known(flags: &mut [Flag], name: &str, is_known: IsKnown, warnings: &mut Vec<String>) {
    for flag in flags.iter_mut().filter(|flag| flag.name == name) {
        let Some(value) = &mut flag.value else { continue };
        let (known, unknown): (Vec<&str>, Vec<&str>) =
            value.split(',').partition(|entry| is_known(entry));
        for entry in unknown {
            warnings.push(format!("--{name}={entry} means nothing here and is left out"));
        }
        *value = known.join(",");
    }
}

fn flag(name: &str, value: &str) -> Flag {
    Flag { name: name.to_owned(), value: Some(value.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::super::arguments::flags;
    use super::*;

    fn read(line: &str) -> anyhow::Result<Translation> {
        let has_etcd = line.contains("real-etcd");
        rewrite(&flags(line.split_whitespace().map(str::to_owned)), &serve(), has_etcd)
    }

    fn check(line: &str, arguments: &str, warnings: &[&str]) {
        let found = read(line).expect("it is understood");
        let wanted: Vec<&str> = arguments.split_whitespace().collect();
        let without_defaults = |argument: &&String| {
            !DEFAULTS.iter().any(|(name, value)| **argument == format!("--{name}={value}"))
        };
        let arguments: Vec<&String> = found.arguments.iter().filter(without_defaults).collect();
        assert_eq!(arguments, wanted, "{line}");
        let left_out: Vec<&str> = found
            .warnings
            .iter()
            .filter_map(|w| w.split_once(" means nothing").map(|w| w.0))
            .collect();
        let of_tests = |warning: &&&str| **warning != "--authorization-mode";
        assert_eq!(
            left_out.iter().filter(of_tests).collect::<Vec<_>>(),
            warnings.iter().collect::<Vec<_>>(),
            "{line}"
        );
    }

    #[test]
    fn a_harness_is_understood() {
        check(
            "--allow-privileged=true --bind-address=127.0.0.1 --secure-port 4711 --client-ca-file c \
             --etcd-servers=http://127.0.0.1:1 --disable-admission-plugins=ServiceAccount -v=4",
            "--bind-address=127.0.0.1 --secure-port=4711 --client-ca-file=c \
             --disable-admission-plugins=ServiceAccount --v=4 \
             --controllers=*,-serviceaccount-controller,-root-ca-certificate-publisher-controller",
            &["--allow-privileged"],
        );
        check("--secure-port=1 --secure-port=2", "--secure-port=2", &[]);
        check(
            "--runtime-config=apps/v1=true --runtime-config=settings.k8s.io/v1alpha1,api/beta=true",
            "--runtime-config=apps/v1=true --runtime-config=api/beta=true",
            &["--runtime-config=settings.k8s.io/v1alpha1"],
        );
        check(
            "--feature-gates=Unheard=true,APIResponseCompression=false",
            "--feature-gates=APIResponseCompression=false",
            &["--feature-gates=Unheard=true"],
        );
        check("--anonymous-auth", "--anonymous-auth", &[]);
        let etcd = "--etcd-servers=https://real-etcd:2379 --etcd-cafile=c --etcd-prefix=/p";
        check(etcd, etcd, &[]);
        check("--etcd-servers=http://ours:2379 --etcd-prefix=/p", "", &[]);
        check(
            "--authorization-mode=Node --authorization-mode=RBAC",
            "--authorization-mode=Node --authorization-mode=RBAC",
            &[],
        );
    }

    #[test]
    fn what_would_protect_keeps_the_server_from_starting() {
        for (line, named) in [
            (
                "--service-account-signing-endpoint=p --secure-port=1",
                "--service-account-signing-endpoint=p: ",
            ),
            ("--allow-privileged=true --allow-privileged=false", "--allow-privileged=false: "),
            ("--insecure-port=1 --nonsense", "unknown flags: --insecure-port, --nonsense"),
        ] {
            let refused = read(line).expect_err(line).to_string();
            assert!(refused.starts_with(named), "{line}: {refused}");
        }
    }

    #[test]
    fn stores_of_other_prefixes_lie_apart() {
        for (line, expected) in [
            ("", "pintle"),
            ("--etcd-prefix=/registry", "pintle"),
            ("--etcd-prefix", "pintle"),
            ("--etcd-prefix=/tests/a.b", "pintle-tests-a-b"),
        ] {
            let flags = flags(line.split_whitespace().map(str::to_owned));
            assert_eq!(subdirectory(&flags), expected, "{line}");
        }
    }

    #[test]
    fn a_certificate_that_is_there_is_used() {
        let given = |line: &str, there: bool| {
            let mut flags = flags(line.split_whitespace().map(str::to_owned));
            take_certificate(&mut flags, |_| there);
            let names: Vec<String> = flags.into_iter().map(|flag| flag.name).collect();
            names.join(" ")
        };
        assert_eq!(given("--cert-dir=d", true), "tls-cert-file tls-private-key-file");
        assert_eq!(given("--cert-dir=d", false), "cert-dir");
        assert_eq!(given("--cert-dir=d --tls-cert-file=c", true), "tls-cert-file");
        assert_eq!(given("", true), "");
    }
}
