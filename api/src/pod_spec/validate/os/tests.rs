//! Pods of either system, with what the other one has: as a kube-apiserver answers.

use super::*;
use expect_test::{Expect, expect};
use serde_json::json;

fn check(spec: Value, expected: Expect) {
    let path = Path::root("spec");
    let mut errors = windows_options(json::get(&spec, "securityContext"), &path);
    errors.extend(host_processes(&spec, &path));
    errors.extend(fields(&spec, &path));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    expected.assert_eq(&texts.join("\n"));
}

#[test]
fn pods_of_windows_have_nothing_of_linux() {
    check(
        json!({
            "os": { "name": "windows" }, "hostPID": true, "hostIPC": false, "hostUsers": false,
            "shareProcessNamespace": false,
            "securityContext": { "sysctls": [], "fsGroup": 1, "supplementalGroups": [] },
            "initContainers": [{ "securityContext": { "runAsUser": 1 } }],
            "containers": [{ "securityContext": { "procMount": "Default", "privileged": false } }],
        }),
        expect![[r#"
            spec.hostUsers: Forbidden: cannot be set for a windows pod
            spec.hostPID: Forbidden: cannot be set for a windows pod
            spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod
            spec.shareProcessNamespace: Forbidden: cannot be set for a windows pod
            spec.securityContext.supplementalGroups: Forbidden: cannot be set for a windows pod
            spec.initContainers[0].securityContext.runAsUser: Forbidden: cannot be set for a windows pod
            spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod
            spec.containers[0].securityContext.procMount: Forbidden: cannot be set for a windows pod"#]],
    );
}

#[test]
fn pods_of_linux_have_no_options_of_windows() {
    check(
        json!({
            "os": { "name": "linux" }, "securityContext": { "windowsOptions": {} },
            "containers": [{ "securityContext": { "windowsOptions": {} } }, {}],
        }),
        expect![[r#"
            spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod
            spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"#]],
    );
    check(
        json!({ "os": { "name": "plan9" } }),
        expect![[r#"spec.os: Unsupported value: "plan9": supported values: "linux", "windows""#]],
    );
    check(json!({ "os": {} }), expect!["spec.os.name: Required value"]);
}

#[test]
fn processes_of_the_host_are_all_of_a_pod() {
    let own = |is: bool| json!({ "windowsOptions": { "hostProcess": is } });
    check(
        json!({
            "securityContext": own(true),
            "containers": [{}, { "securityContext": own(false) }],
        }),
        expect![[r#"
            spec.containers[1].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true
            spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers
            spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"#]],
    );
    check(
        json!({ "hostNetwork": true, "containers": [{ "securityContext": own(true) }] }),
        expect![""],
    );
}

#[test]
fn users_of_windows() {
    for good in [
        "u",
        "a.b\\u s",
        "NET\u{e9} BIOS\\u",
        ".a\\u.",
        "d1.example\\x",
    ] {
        let bad_domain = good.starts_with('.');
        assert_eq!(user_name(good).is_empty(), !bad_domain, "{good}");
    }
    let long = "u".repeat(105);
    for (bad, why) in [
        ("", "runAsUserName cannot be an empty string"),
        ("a\tb", "runAsUserName cannot contain control characters"),
        (
            "a\\b\\c",
            "runAsUserName cannot contain more than one backslash",
        ),
        ("a\\", "runAsUserName's User cannot be empty"),
        (
            "\\u",
            "runAsUserName's Domain doesn't match the NetBios nor the DNS format",
        ),
        (
            &long,
            "runAsUserName's User length must not be longer than 104 characters",
        ),
        (
            ". .",
            "runAsUserName's User cannot contain only periods or spaces",
        ),
        (
            "a@b",
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        ),
    ] {
        assert_eq!(user_name(bad), [why], "{bad}");
    }
    check(
        json!({ "securityContext": { "windowsOptions": {
            "gmsaCredentialSpec": "", "runAsUserName": "", "gmsaCredentialSpecName": "A",
        } } }),
        expect![[r#"
            spec.windowsOptions.gmsaCredentialSpecName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            spec.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string
            spec.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string"#]],
    );
}
