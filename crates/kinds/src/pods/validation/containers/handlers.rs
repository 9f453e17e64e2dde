//! Probes and lifecycle handlers of containers.

use crate::{
    field::{Errors, Field},
    formats,
    pods::validation::Spec,
    rules::{
        Rule::{Do, NotNegative, Required},
        Rules, check,
    },
};

/// Checks the three probes.
pub(super) fn check_probes(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    for (member, last) in [
        ("livenessProbe", succeeds_once as fn(&Field<'_>, &mut Errors)),
        ("readinessProbe", has_no_grace_period),
        ("startupProbe", succeeds_once),
    ] {
        if let Some(probe) = container.find(member) {
            check_handler(spec, &probe, PROBE_HANDLERS, errors);
            check(&probe, PROBE, errors);
            last(&probe, errors);
        }
    }
}

/// Checks `lifecycle`.
pub(super) fn check_lifecycle(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    let Some(lifecycle) = container.find("lifecycle") else { return };
    for member in ["postStart", "preStop"] {
        if let Some(handler) = lifecycle.find(member) {
            check_handler(spec, &handler, LIFECYCLE_HANDLERS, errors);
        }
    }
    if let Some(signal) = lifecycle.find("stopSignal") {
        check_stop_signal(spec, &signal, errors);
    }
}

const PROBE: Rules = &[
    NotNegative("initialDelaySeconds"),
    NotNegative("timeoutSeconds"),
    NotNegative("periodSeconds"),
    NotNegative("successThreshold"),
    NotNegative("failureThreshold"),
    Do(|probe, errors| {
        let seconds = probe.get("terminationGracePeriodSeconds");
        if seconds.int().is_some_and(|seconds| seconds <= 0) {
            errors.push(seconds.invalid("must be greater than 0"));
        }
    }),
];

fn succeeds_once(probe: &Field<'_>, errors: &mut Errors) {
    let threshold = probe.get("successThreshold");
    let number = threshold.int().unwrap_or(0);
    if number != 1 {
        errors.push(threshold.invalid_as(number, "must be 1"));
    }
}

fn has_no_grace_period(probe: &Field<'_>, errors: &mut Errors) {
    if let Some(seconds) = probe.find("terminationGracePeriodSeconds") {
        errors.push(seconds.invalid("must not be set for readinessProbes"));
    }
}

/// A handler's action and its rules.
type Action = (&'static str, Rules);

const EXEC: Action = ("exec", &[Required("command")]);
const TCP: Action = ("tcpSocket", &[Do(check_port)]);
const GRPC: Action = ("grpc", &[Do(check_port)]);
const SLEEP: Action = ("sleep", &[]);
const HTTP: Action = (
    "httpGet",
    &[
        Required("path"),
        Do(check_port),
        Do(|action, errors| {
            let scheme = action.get("scheme");
            if !matches!(scheme.text(), "HTTP" | "HTTPS") {
                errors.push(scheme.not_supported(&["HTTP", "HTTPS"]));
            }
        }),
        Do(check_headers),
    ],
);

const PROBE_HANDLERS: &[Action] = &[EXEC, HTTP, TCP, GRPC];
const LIFECYCLE_HANDLERS: &[Action] = &[EXEC, HTTP, TCP, SLEEP];

/// Checks that a handler has exactly one action, and the rules of the first one.
fn check_handler(spec: &Spec<'_>, handler: &Field<'_>, actions: &[Action], errors: &mut Errors) {
    let mut is_found = false;
    for (member, rules) in actions {
        let Some(action) = handler.find(member) else { continue };
        if is_found {
            errors.push(action.forbidden("may not specify more than 1 handler type"));
            continue;
        }
        is_found = true;
        check(&action, rules, errors);
        if *member == "sleep" {
            check_sleep(spec, &action, errors);
        }
    }
    if !is_found {
        errors.push(handler.required("must specify a handler type"));
    }
}

/// Checks that `sleep` is not negative and not longer than the pod's grace period, if there is one.
fn check_sleep(spec: &Spec<'_>, sleep: &Field<'_>, errors: &mut Errors) {
    let seconds = sleep.get("seconds").int().unwrap_or(0);
    if let Some(most) = spec.grace_period
        && !(0..=most).contains(&seconds)
    {
        let words =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
        errors.push(sleep.invalid_as(seconds, words));
    }
}

fn check_port(action: &Field<'_>, errors: &mut Errors) {
    let port = action.get("port");
    match port.value().as_str() {
        Some(name) => port.all_invalid(formats::port_name(name), errors),
        None => {
            let number = port.int().unwrap_or(0);
            let wrong = formats::port_number(number);
            errors.extend(wrong.map(|words| port.invalid_as(number, words)));
        }
    }
}

/// As in upstream, errors about one header have the path of the list.
fn check_headers(action: &Field<'_>, errors: &mut Errors) {
    let list = action.get("httpHeaders");
    for header in action.items("httpHeaders") {
        let name = header.str("name");
        list.all_invalid_as(name, formats::header_name(name), errors);
    }
}

const WINDOWS_SIGNALS: &[&str] = &["SIGKILL", "SIGTERM"];

/// The operating system determines the valid signals, so `spec.os` must be set.
fn check_stop_signal(spec: &Spec<'_>, signal: &Field<'_>, errors: &mut Errors) {
    match spec.field.at(&["os", "name"]).text() {
        "" => {
            let words = "may not be set for containers with empty `spec.os.name`";
            errors.push(signal.forbidden(words));
        }
        "windows" if !WINDOWS_SIGNALS.contains(&signal.text()) => {
            errors.push(signal.not_supported(WINDOWS_SIGNALS));
        }
        "linux" if !is_linux_signal(signal.text()) => errors.push(signal.not_supported(&[])),
        _ => {}
    }
}

fn is_linux_signal(name: &str) -> bool {
    const SIGNALS: &[&str] = &[
        "SIGABRT",
        "SIGALRM",
        "SIGBUS",
        "SIGCHLD",
        "SIGCLD",
        "SIGCONT",
        "SIGFPE",
        "SIGHUP",
        "SIGILL",
        "SIGINT",
        "SIGIO",
        "SIGIOT",
        "SIGKILL",
        "SIGPIPE",
        "SIGPOLL",
        "SIGPROF",
        "SIGPWR",
        "SIGQUIT",
        "SIGSEGV",
        "SIGSTKFLT",
        "SIGSTOP",
        "SIGSYS",
        "SIGTERM",
        "SIGTRAP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGUSR1",
        "SIGUSR2",
        "SIGVTALRM",
        "SIGWINCH",
        "SIGXCPU",
        "SIGXFSZ",
    ];
    let is_real_time = |name: &str| {
        let (base, most) =
            if name.starts_with("SIGRTMIN") { ("SIGRTMIN+", 15) } else { ("SIGRTMAX-", 14) };
        let offset = name.strip_prefix(base).and_then(|offset| offset.parse::<u8>().ok());
        matches!(name, "SIGRTMIN" | "SIGRTMAX") || offset.is_some_and(|n| (1..=most).contains(&n))
    };
    SIGNALS.contains(&name) || is_real_time(name)
}
