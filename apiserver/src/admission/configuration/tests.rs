//! The operator's file, and what is said of bad ones.

use super::*;
use expect_test::{Expect, expect};

fn read_text(text: &str) -> Result<PodSecurity, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admission.yaml");
    fs::write(&path, text).unwrap();
    let beside = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: \
                  PodSecurityConfiguration\ndefaults:\n  audit: baseline\n";
    fs::write(directory.path().join("pods.yaml"), beside).unwrap();
    let shown = format!("{}/", directory.path().display());
    read(&path).map_err(|error| error.to_string().replace(&shown, ""))
}

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";

fn check(rest: &str, expected: Expect) {
    let text = match read_text(&format!("{HEAD}{rest}")) {
        Ok(settled) => format!("{settled:?}"),
        Err(why) => why,
    };
    expected.assert_eq(&text);
}

fn inline(rest: &str) -> String {
    format!(
        "plugins:\n- name: PodSecurity\n  configuration:\n    apiVersion: \
         pod-security.admission.config.k8s.io/v1\n    kind: PodSecurityConfiguration\n{rest}"
    )
}

#[test]
fn defaults_and_exemptions_are_read() {
    check(
        "",
        expect![
            "PodSecurity { defaults: Policy { enforce: LevelVersion { level: Privileged, version: Latest }, audit: LevelVersion { level: Privileged, version: Latest }, warn: LevelVersion { level: Privileged, version: Latest } }, exempt_users: {}, exempt_namespaces: {}, exempt_runtime_classes: {} }"
        ],
    );
    let full = "    defaults:\n      enforce: baseline\n      enforce-version: v1.30\n      warn: \
                restricted\n    exemptions:\n      usernames: [joe]\n      namespaces: \
                [kube-system]\n      runtimeClasses: [vm]\n";
    check(
        &inline(full),
        expect![[
            r#"PodSecurity { defaults: Policy { enforce: LevelVersion { level: Baseline, version: Minor(30) }, audit: LevelVersion { level: Privileged, version: Latest }, warn: LevelVersion { level: Restricted, version: Latest } }, exempt_users: {"joe"}, exempt_namespaces: {"kube-system"}, exempt_runtime_classes: {"vm"} }"#
        ]],
    );
    check(
        "plugins:\n- name: PodSecurity\n  path: pods.yaml\n",
        expect![
            "PodSecurity { defaults: Policy { enforce: LevelVersion { level: Privileged, version: Latest }, audit: LevelVersion { level: Baseline, version: Latest }, warn: LevelVersion { level: Privileged, version: Latest } }, exempt_users: {}, exempt_namespaces: {}, exempt_runtime_classes: {} }"
        ],
    );
}

#[test]
fn bad_files_are_told_where() {
    check(
        "plugins:\n- name: EventRateLimit\n  path: x\n",
        expect![[
            r#"admission.yaml: plugin "EventRateLimit": only PodSecurity takes a configuration"#
        ]],
    );
    check(
        "plugins:\n- name: PodSecurity\n  path: gone.yaml\n",
        expect!["gone.yaml: cannot be read: No such file or directory (os error 2)"],
    );
    check(
        "plugin: []\n",
        expect![
            "admission.yaml: unknown field `plugin`, expected one of `apiVersion`, `kind`, `plugins` at line 3 column 1"
        ],
    );
    check(
        &inline("    defaults: { enforce: strict }\n"),
        expect![[
            r#"admission.yaml: plugin PodSecurity: defaults.enforce: Invalid value: "strict": must be one of privileged, baseline, restricted"#
        ]],
    );
    check(
        &inline("    defaults: { warn-version: '1.3' }\n"),
        expect![[
            r#"admission.yaml: plugin PodSecurity: defaults.warn-version: Invalid value: "1.3": must be "latest" or "v1.x""#
        ]],
    );
    check(
        &inline("    exemptions: { namespaces: [A] }\n"),
        expect![[
            r#"admission.yaml: plugin PodSecurity: exemptions.namespaces[0]: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"#
        ]],
    );
    check(
        &inline("    exemptions: { usernames: [a, a] }\n"),
        expect![[
            r#"admission.yaml: plugin PodSecurity: exemptions.usernames[1]: Duplicate value: "a""#
        ]],
    );
    assert!(
        read_text("kind: Policy\napiVersion: v1\n")
            .unwrap_err()
            .contains("must be of")
    );
}
