//! Runs as `kube-apiserver`: translates its command line to that of `pintle serve`.
//!
//! Flags that `pintle serve` has are passed on. A flag of kube-apiserver that `pintle serve` lacks
//! is ignored with a warning, under this name only, because a harness cannot be changed. It is an
//! error if it protects data or access. An unknown flag is an error, too.

mod absent;
mod deprecated;

use std::path::Path;

use absent::Absence;
use anyhow::bail;
use clap::{ArgAction, Command, CommandFactory};
use pintle_server::{FeatureGates, RuntimeConfig, RuntimeConfigError};

use super::arguments::{Flag, is_on, value};
use super::etcd::{self, Backend};
use crate::command_line::Pintle;

/// kube-apiserver's defaults where `pintle serve` has others. The delay is for tests that finalize
/// namespaces themselves; kube-controller-manager waits five seconds.
const DEFAULTS: &[(&str, &str)] = &[
    ("bind-address", "0.0.0.0"),
    ("authorization-mode", "AlwaysAllow"),
    ("namespace-deletion-delay", "300ms"),
];

/// Flags for a real etcd.
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

/// Flags of `pintle serve` that are unknown under this name, because they open an additional
/// endpoint, or name a file of flags that may.
const OWN: [&str; 2] = ["config", "console"];

/// The highest verbosity of `pintle serve`.
const VERBOSITY_MAX: u32 = 10;

/// kube-apiserver's default of `--cert-dir`.
const CERT_DIR: &str = "/var/run/kubernetes";

/// The value of `--controllers` if a harness disables service accounts: without the controllers
/// that create objects in each namespace, because the harness's tests count such objects.
const WITHOUT_ACCOUNTS: &str =
    "*,-serviceaccount-controller,-root-ca-certificate-publisher-controller";

/// The command line of `pintle serve`, with warnings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Translation {
    pub(crate) arguments: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// The output of `--help` and `--version`.
pub(crate) fn words(flags: &[Flag]) -> Option<String> {
    if is_on(flags, "help") || is_on(flags, "h") {
        let mut command = serve().name("kube-apiserver").bin_name("kube-apiserver");
        return Some(format!("{}", command.render_long_help()));
    }
    is_on(flags, "version").then(|| format!("Kubernetes {}\n", pintle_server::KUBERNETES_VERSION))
}

/// Translates a command line; if its etcd is Pintle's, asks it for the store's directory.
pub(crate) async fn translate(flags: &[Flag]) -> anyhow::Result<Translation> {
    let mut translation = rewrite(flags, &serve(), false)?; // fails before it waits for an etcd
    let backend = match value(flags, "etcd-servers") {
        Some(urls) => Some(etcd::ask(urls).await?),
        None => None,
    };
    if backend == Some(Backend::Etcd) {
        if let Some(overrides) = value(flags, "etcd-servers-overrides") {
            bail!(
                "--etcd-servers-overrides={overrides}: not implemented yet; the objects in those etcds \
                 would not be found"
            );
        }
        translation = rewrite(flags, &serve(), true)?;
    }
    let mut add = |flag: &str| translation.arguments.push(flag.to_owned());
    match backend {
        None => add("--ephemeral"),
        // The directory then holds certificates and the kubeconfig, and no objects.
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

/// The name of the store's subdirectory for an etcd prefix: servers with different prefixes have
/// different stores, unless the prefixes differ only in punctuation.
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

/// Keeps the flags of `serve` and turns others into warnings, or fails. Flags of etcd are kept for
/// a real etcd only.
fn rewrite(flags: &[Flag], serve: &Command, has_etcd: bool) -> anyhow::Result<Translation> {
    let mut translation = Translation::default();
    let (mut missing, mut unknown) = (Vec::new(), Vec::new());
    let mut flags = with_defaults(flags);
    use_certificate(&mut flags, Path::is_file);
    lower_verbosity(&mut flags);
    for (name, is_known) in VERSIONED_LISTS {
        remove_unknown(&mut flags, name, is_known, &mut translation.warnings);
    }
    translation.warnings.extend(flags.iter().filter_map(deprecated::warning));
    for (index, flag @ Flag { name, .. }) in flags.iter().enumerate() {
        if !has_etcd && ETCD_FLAGS.contains(&name.as_str()) {
            continue;
        }
        let mut known = serve.get_arguments().filter(|_| !OWN.contains(&name.as_str()));
        let known = known.find(|argument| argument.get_long() == Some(name));
        let Some(argument) = known else {
            match absent::absence(flag) {
                Absence::Harmless => {
                    let warning = format!("--{name} has no effect and is ignored");
                    translation.warnings.push(warning);
                }
                Absence::Protects => missing.push(shown(flag)),
                Absence::Unknown => unknown.push(format!("--{name}")),
            }
            continue;
        };
        let repeats = matches!(argument.get_action(), ArgAction::Append);
        if !repeats && flags[index + 1..].iter().any(|later| later.name == *name) {
            continue; // the last value wins
        }
        translation.arguments.push(shown(flag));
    }
    if !unknown.is_empty() {
        bail!("unknown flags: {}", unknown.join(", "));
    }
    if !missing.is_empty() {
        bail!(
            "{}: not implemented yet; remove it to start the server without its protection",
            missing.join(", ")
        );
    }
    translation.warnings.sort();
    translation.warnings.dedup();
    Ok(translation)
}

/// Formats a flag as on a command line.
fn shown(Flag { name, value }: &Flag) -> String {
    match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    }
}

fn with_defaults(flags: &[Flag]) -> Vec<Flag> {
    let is_set = |name: &str| flags.iter().any(|flag| flag.name == name);
    let is_replaced = |name: &str| name == "authorization-mode" && is_set("authorization-config");
    let defaults = DEFAULTS.iter().filter(|(name, _)| !is_set(name) && !is_replaced(name));
    let defaults = defaults.map(|(name, value)| flag(name, value));
    let without_accounts = flags
        .iter()
        .filter(|flag| flag.name == "disable-admission-plugins" && !is_set("controllers"))
        .filter_map(|flag| flag.value.as_deref())
        .any(|plugins| plugins.split(',').any(|plugin| plugin == "ServiceAccount"));
    let controllers = without_accounts.then(|| flag("controllers", WITHOUT_ACCOUNTS));
    // One-letter flags are treated as long ones: -v=4.
    flags.iter().cloned().chain(defaults).chain(controllers).collect()
}

/// Uses the certificate and the key in `--cert-dir` as the serving certificate (upstream: PairName
/// "apiserver"). Without one, the server generates it there.
fn use_certificate(flags: &mut Vec<Flag>, exists: impl Fn(&Path) -> bool) {
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

/// Lowers a verbosity that `pintle serve` refuses to its highest: a kube-apiserver takes any number
/// (upstream: component-base/logs/api/v1, `VerbosityLevelPflag`).
fn lower_verbosity(flags: &mut [Flag]) {
    for flag in flags.iter_mut().filter(|flag| flag.name == "v") {
        let level = flag.value.as_deref().and_then(|value| value.parse::<u32>().ok());
        if let Some(level) = level {
            flag.value = Some(level.min(VERBOSITY_MAX).to_string());
        }
    }
}

/// Whether an entry of a list is known.
type IsKnown = fn(&str) -> bool;

/// Flags whose lists depend on the release, with the test of their entries.
const VERSIONED_LISTS: [(&str, IsKnown); 2] = [
    ("feature-gates", |gate| FeatureGates::parse([gate]).is_ok()),
    ("runtime-config", |setting| {
        let read = RuntimeConfig::parse([setting]);
        !matches!(read, Err(RuntimeConfigError::Group(_) | RuntimeConfigError::Version(_)))
    }),
];

/// Removes unknown entries of a list.
fn remove_unknown(flags: &mut [Flag], name: &str, is_known: IsKnown, warnings: &mut Vec<String>) {
    for flag in flags.iter_mut().filter(|flag| flag.name == name) {
        let Some(value) = &mut flag.value else { continue };
        let (known, unknown): (Vec<&str>, Vec<&str>) =
            value.split(',').partition(|entry| is_known(entry));
        for entry in unknown {
            warnings.push(format!("--{name}={entry} has no effect and is ignored"));
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
        let found = read(line).expect("a valid command line");
        let wanted: Vec<&str> = arguments.split_whitespace().collect();
        let without_defaults = |argument: &&String| {
            !DEFAULTS.iter().any(|(name, value)| **argument == format!("--{name}={value}"))
        };
        let arguments: Vec<&String> = found.arguments.iter().filter(without_defaults).collect();
        assert_eq!(arguments, wanted, "{line}");
        let left_out: Vec<&str> = found
            .warnings
            .iter()
            .filter_map(|w| w.split_once(" has no effect").map(|w| w.0))
            .collect();
        let of_tests = |warning: &&&str| **warning != "--authorization-mode";
        assert_eq!(
            left_out.iter().filter(of_tests).collect::<Vec<_>>(),
            warnings.iter().collect::<Vec<_>>(),
            "{line}"
        );
    }

    #[test]
    fn flags_that_open_an_additional_endpoint_are_unknown() {
        for line in ["--console", "--config=f"] {
            let refused = read(line).expect_err(line).to_string();
            assert_eq!(refused, format!("unknown flags: {}", line.trim_end_matches("=f")));
        }
    }

    #[test]
    fn the_command_line_of_a_harness_is_translated() {
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
            "--runtime-config=apps/v1=true --runtime-config=wardle.example.com/v1alpha1,api/beta=true",
            "--runtime-config=apps/v1=true --runtime-config=api/beta=true",
            &["--runtime-config=wardle.example.com/v1alpha1"],
        );
        check(
            "--feature-gates=Unheard=true,APIResponseCompression=false",
            "--feature-gates=APIResponseCompression=false",
            &["--feature-gates=Unheard=true"],
        );
        check("--anonymous-auth", "--anonymous-auth", &[]);
        check("-v=99", "--v=10", &[]);
        check("--v=4", "--v=4", &[]);
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
    fn a_missing_flag_that_protects_prevents_the_start() {
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
    fn each_prefix_has_its_own_store() {
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
    fn an_existing_certificate_is_used() {
        let given = |line: &str, there: bool| {
            let mut flags = flags(line.split_whitespace().map(str::to_owned));
            use_certificate(&mut flags, |_| there);
            let names: Vec<String> = flags.into_iter().map(|flag| flag.name).collect();
            names.join(" ")
        };
        assert_eq!(given("--cert-dir=d", true), "tls-cert-file tls-private-key-file");
        assert_eq!(given("--cert-dir=d", false), "cert-dir");
        assert_eq!(given("--cert-dir=d --tls-cert-file=c", true), "tls-cert-file");
        assert_eq!(given("", true), "");
    }
}
