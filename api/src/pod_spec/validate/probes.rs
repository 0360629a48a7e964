//! Probes and lifecycle hooks: what is called, and when.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::{json, names};
use serde_json::Value;

/// One probe of a container; `field` says which.
pub fn probe(probe: &Value, field: &str, grace: Option<i64>, path: &Path) -> ErrorList {
    let mut errors = handler(probe, grace, path);
    for name in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        checks::nonnegative(&mut errors, probe, name, path);
    }
    let grace_field = "terminationGracePeriodSeconds";
    checks::positive_if_set(&mut errors, probe, grace_field, path);
    if field == "readinessProbe" {
        if let Some(seconds) = json::int(probe, grace_field) {
            let detail = "must not be set for readinessProbes";
            errors.push(FieldError::invalid(
                &path.child(grace_field),
                seconds,
                detail,
            ));
        }
    } else {
        let threshold = json::int(probe, "successThreshold").unwrap_or(0);
        if threshold != 1 {
            let path = path.child("successThreshold");
            errors.push(FieldError::invalid(&path, threshold, "must be 1"));
        }
    }
    errors
}

pub fn lifecycle(lifecycle: &Value, grace: Option<i64>, os: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["postStart", "preStop"] {
        if let Some(hook) = json::some(lifecycle, name) {
            errors.extend(handler(hook, grace, &path.child(name)));
        }
    }
    if let Some(signal) = json::some(lifecycle, "stopSignal").and_then(Value::as_str) {
        errors.extend(stop_signal(signal, os, &path.child("stopSignal")));
    }
    errors
}

fn stop_signal(signal: &str, os: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match json::text(os, "name") {
        "" => {
            let detail = "may not be set for containers with empty `spec.os.name`";
            errors.push(FieldError::forbidden(path, detail));
        }
        "windows" => checks::one_of(&mut errors, signal, &["SIGKILL", "SIGTERM"], path),
        "linux" if !is_linux_signal(signal) => {
            errors.push(FieldError::not_supported(path, signal, PLAIN_SIGNALS));
        }
        _ => {}
    }
    errors
}

/// Signals with a name of their own, sorted.
const PLAIN_SIGNALS: &[&str] = &[
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
    "SIGRTMAX",
    "SIGRTMIN",
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

fn is_linux_signal(signal: &str) -> bool {
    let within = |prefix: &str, most: u32| {
        signal
            .strip_prefix(prefix)
            .and_then(|offset| offset.parse::<u32>().ok())
            .is_some_and(|offset| (1..=most).contains(&offset))
    };
    PLAIN_SIGNALS.contains(&signal) || within("SIGRTMIN+", 15) || within("SIGRTMAX-", 14)
}

/// Exactly one way to call.
fn handler(handler: &Value, grace: Option<i64>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut found = false;
    for name in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = json::some(handler, name) else {
            continue;
        };
        let path = path.child(name);
        if found {
            let detail = "may not specify more than 1 handler type";
            errors.push(FieldError::forbidden(&path, detail));
            continue;
        }
        found = true;
        match name {
            "exec" => {
                if json::list(action, "command").is_empty() {
                    errors.push(FieldError::required(&path.child("command"), ""));
                }
            }
            "httpGet" => errors.extend(http_get(action, &path)),
            "sleep" => errors.extend(sleep(action, grace, &path)),
            _ => {
                let port = json::get(action, "port");
                checks::port_number_or_name(&mut errors, port, &path.child("port"));
            }
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
    errors
}

fn http_get(action: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    checks::required(&mut errors, action, "path", path);
    checks::port_number_or_name(&mut errors, json::get(action, "port"), &path.child("port"));
    let scheme = json::text(action, "scheme");
    checks::one_of(
        &mut errors,
        scheme,
        &["HTTP", "HTTPS"],
        &path.child("scheme"),
    );
    for header in json::list(action, "httpHeaders") {
        let name = json::text(header, "name");
        for detail in names::http_header(name) {
            errors.push(FieldError::invalid(
                &path.child("httpHeaders"),
                name,
                detail,
            ));
        }
    }
    errors
}

fn sleep(action: &Value, grace: Option<i64>, path: &Path) -> ErrorList {
    let seconds = json::int(action, "seconds").unwrap_or(0);
    match grace {
        Some(grace) if !(0..=grace).contains(&seconds) => {
            let detail = format!(
                "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            );
            vec![FieldError::invalid(path, seconds, detail)]
        }
        _ => ErrorList::new(),
    }
}
