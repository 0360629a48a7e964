//! What goes with the operating system of a pod: options of Windows, and what the other system has
//! not.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::meta_validate::invalid_each;
use crate::pod_spec::containers;
use crate::{json, names};
use serde_json::Value;

const GMSA_SPEC_KIB_MAX: usize = 64;
/// Of the domain of a user, less one.
const DOMAIN_BYTES_MAX: usize = 256;
const NETBIOS_CHARACTERS_MAX: usize = 15;
const DNS_LABEL_BYTES_MAX: usize = 63;
const USER_BYTES_MAX: usize = 104;

/// Fields that pods of Windows have not, in the order in which they are told of. Those of the
/// security context are set when they are there, flags and lists where they say something.
const OF_PODS: [(&str, &str); 15] = [
    ("securityContext", "appArmorProfile"),
    ("securityContext", "seLinuxOptions"),
    ("", "hostUsers"),
    ("", "hostPID"),
    ("", "hostIPC"),
    ("securityContext", "seccompProfile"),
    ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"),
    ("securityContext", "sysctls"),
    ("", "shareProcessNamespace"),
    ("securityContext", "runAsUser"),
    ("securityContext", "runAsGroup"),
    ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"),
    ("securityContext", "seLinuxChangePolicy"),
];

/// The same of the security context of a container.
const OF_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

pub fn name(spec: &Value) -> &str {
    json::text(json::get(spec, "os"), "name")
}

/// The system's name, and what it has not.
pub fn fields(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if !json::has(spec, "os") {
        return errors;
    }
    let of_os = path.child("os");
    match name(spec) {
        "" => errors.push(FieldError::required(&of_os.child("name"), "")),
        "linux" => errors.extend(linux(spec, path)),
        "windows" => errors.extend(windows(spec, path)),
        other => checks::one_of(&mut errors, other, &["linux", "windows"], &of_os),
    }
    errors
}

fn linux(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut look = |of: &Value, path: &Path| {
        if json::has(json::get(of, "securityContext"), "windowsOptions") {
            let path = path.child("securityContext").child("windowsOptions");
            let detail = "windows options cannot be set for a linux pod";
            errors.push(FieldError::forbidden(&path, detail));
        }
    };
    look(spec, path);
    for (container, path) in containers(spec, path) {
        look(container, &path);
    }
    errors
}

fn windows(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut refuse = |path: &Path| {
        errors.push(FieldError::forbidden(
            path,
            "cannot be set for a windows pod",
        ));
    };
    for (parent, field) in OF_PODS {
        let (value, path) = match parent {
            "" => (json::get(spec, field), path.child(field)),
            _ => (
                json::at(spec, &[parent, field]),
                path.child(parent).child(field),
            ),
        };
        let is_set = match (field, value) {
            ("hostPID" | "hostIPC", flag) => *flag == true,
            ("sysctls", Value::Array(all)) => !all.is_empty(),
            (_, value) => !value.is_null(),
        };
        if is_set {
            refuse(&path);
        }
    }
    for (container, path) in containers(spec, path) {
        let context = json::get(container, "securityContext");
        let path = path.child("securityContext");
        for field in OF_CONTAINERS
            .iter()
            .filter(|field| json::has(context, field))
        {
            refuse(&path.child(field));
        }
    }
    errors
}

fn host_process(of: &Value) -> Option<bool> {
    json::at(of, &["securityContext", "windowsOptions", "hostProcess"]).as_bool()
}

/// Containers that are processes of the host: all of a pod are, or none.
pub fn host_processes(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let of_pod = host_process(spec);
    let all = containers(spec, path);
    let mut count = 0;
    for (container, path) in &all {
        let own = host_process(container);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let options = path.child("securityContext").child("windowsOptions");
            let detail = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            errors.push(FieldError::invalid(
                &options.child("hostProcess"),
                own,
                detail,
            ));
        }
        count += usize::from(own.or(of_pod) == Some(true));
    }
    if count == 0 {
        return errors;
    }
    if count != all.len() {
        let detail = "If pod contains any hostProcess containers then all containers must be \
                      HostProcess containers";
        errors.push(FieldError::invalid(path, "", detail));
    }
    if !json::flag(spec, "hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        let path = path.child("hostNetwork");
        errors.push(FieldError::invalid(&path, false, detail));
    }
    errors
}

/// WindowsSecurityContextOptions of a security context.
pub fn windows_options(context: &Value, path: &Path) -> ErrorList {
    let options = json::get(context, "windowsOptions");
    let path = path.child("windowsOptions");
    let text = |field: &str| json::some(options, field).and_then(Value::as_str);
    let mut errors = ErrorList::new();
    if let Some(name) = text("gmsaCredentialSpecName") {
        let path = path.child("gmsaCredentialSpecName");
        invalid_each(&mut errors, &path, name, names::dns_subdomain(name));
    }
    if let Some(spec) = text("gmsaCredentialSpec") {
        let detail = if spec.is_empty() {
            "gmsaCredentialSpec cannot be an empty string".to_owned()
        } else {
            format!("gmsaCredentialSpec size must be under {GMSA_SPEC_KIB_MAX} KiB")
        };
        if spec.is_empty() || spec.len() > GMSA_SPEC_KIB_MAX * 1024 {
            let path = path.child("gmsaCredentialSpec");
            errors.push(FieldError::invalid(&path, spec, detail));
        }
    }
    if let Some(name) = text("runAsUserName") {
        let path = path.child("runAsUserName");
        let details = user_name(name).into_iter();
        errors.extend(details.map(|detail| FieldError::invalid(&path, name, detail)));
    }
    errors
}

/// What is wrong with `USER` or `DOMAIN\USER`.
fn user_name(name: &str) -> Vec<String> {
    const BAD: &str = "\"/\\:;|=,+*?<>@[]";
    let one = |detail: &str| vec![format!("runAsUserName {detail}")];
    if name.is_empty() {
        return one("cannot be an empty string");
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return one("cannot contain control characters");
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>()[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return one("cannot contain more than one backslash"),
    };
    let mut details = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_BYTES_MAX) {
        details.push(format!(
            "runAsUserName's Domain length must be under {DOMAIN_BYTES_MAX} characters"
        ));
    }
    if domain.is_some_and(|domain| !is_netbios(domain) && !is_dns(domain)) {
        let detail = "runAsUserName's Domain doesn't match the NetBios nor the DNS format";
        details.push(detail.to_owned());
    }
    if user.is_empty() {
        details.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER_BYTES_MAX {
        details.push(format!(
            "runAsUserName's User length must not be longer than {USER_BYTES_MAX} characters"
        ));
    }
    if !user.is_empty() && user.bytes().all(|byte| matches!(byte, b'.' | b' ')) {
        let detail = "runAsUserName's User cannot contain only periods or spaces";
        details.push(detail.to_owned());
    }
    if user.contains(|c| BAD.contains(c)) {
        let detail = "runAsUserName's User cannot contain the following characters: \
                      \"/\\:;|=,+*?<>@[]";
        details.push(detail.to_owned());
    }
    details
}

fn is_netbios(domain: &str) -> bool {
    let length = domain.chars().count();
    (1..=NETBIOS_CHARACTERS_MAX).contains(&length)
        && !domain.starts_with('.')
        && !domain.contains(|c| "\\/:*?\"<>|".contains(c))
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let in_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=DNS_LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(in_label)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

#[cfg(test)]
mod tests;
