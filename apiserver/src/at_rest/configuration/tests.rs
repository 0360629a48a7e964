//! What a configuration may say, and what is told of one that may not be.

use super::*;
use expect_test::{Expect, expect};

const KEY: &str = "c2VjcmV0IGlzIHNlY3VyZSBhbmQgMzIgYnl0ZXMhISE=";

fn configuration(entries: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n\
         resources: {entries}\n"
    )
}

fn check(entries: &str, expected: Expect) {
    let told = match parse(&configuration(&entries.replace("KEY", KEY))) {
        Ok(rules) => format!("{rules:#?}"),
        Err(why) => why,
    };
    expected.assert_eq(&told);
}

#[test]
fn resources_and_providers_are_read_in_order() {
    check(
        "[{resources: [secrets, widgets.example.com, '*.apps'], providers: [{aesgcm: {keys: \
         [{name: a, secret: KEY}, {name: b, secret: KEY}]}}, {identity: {}}]}, \
         {resources: ['*.*'], providers: [{identity: {}}]}]",
        expect![[r#"
            [
                Rule {
                    resources: [
                        One {
                            group: "",
                            plural: "secrets",
                        },
                        One {
                            group: "example.com",
                            plural: "widgets",
                        },
                        Group(
                            "apps",
                        ),
                    ],
                    keys: [
                        Some(
                            Key {
                                name: "aesgcm:a",
                                cipher: Aes256Gcm,
                                ..
                            },
                        ),
                        Some(
                            Key {
                                name: "aesgcm:b",
                                cipher: Aes256Gcm,
                                ..
                            },
                        ),
                        None,
                    ],
                },
                Rule {
                    resources: [
                        All,
                    ],
                    keys: [
                        None,
                    ],
                },
            ]"#]],
    );
}

#[test]
fn what_is_wrong_is_told_all_at_once() {
    check(
        "[{resources: [], providers: []}]",
        expect![
            "[resources[0].resources: Required value: at least one resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required]"
        ],
    );
    check(
        "[{resources: [Secrets, events.events.k8s.io, 'pods.*'], providers: [{}]}]",
        expect![[
            r#"[resources[0].resources[0]: Invalid value: "Secrets": resource name should not contain capital letters, resources[0].resources[1]: Invalid value: "events.events.k8s.io": '*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file, resources[0].resources[2]: Invalid value: "pods.*": encrypting the same resource across groups is not supported, resources[0].providers[0]: Invalid value: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity]"#
        ]],
    );
    check(
        "[{resources: [secrets, '*.'], providers: [{identity: {}, aesgcm: {keys: []}}]}]",
        expect![[
            r#"[resources[0].resources: Invalid value: ["secrets","*."]: using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked, resources[0].providers[0]: Invalid value: more than one provider specified in a single element, should split into different list elements, resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required]"#
        ]],
    );
    check(
        "[{resources: [secrets], providers: [{secretbox: {keys: [{name: a, secret: YWJj}, \
         {secret: '%'}]}}]}]",
        expect![[
            r#"[resources[0].providers[0].secretbox.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 3, expected one of [32], resources[0].providers[0].secretbox.keys[1].name: Required value: name is a mandatory field for a key, resources[0].providers[0].secretbox.keys[1].secret: Invalid value: "REDACTED": secrets must be base64 encoded]"#
        ]],
    );
}

#[test]
fn a_star_alone_says_too_little() {
    check(
        "[{resources: ['*'], providers: [{identity: {}}]}]",
        expect![[
            r#"resources[0].resources[0]: Invalid value: "*": use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"#
        ]],
    );
}

#[test]
fn a_key_management_service_is_refused_by_name() {
    check(
        "[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: x, endpoint: \
         'unix:///kms.sock'}}]}]",
        expect![
            "resources[0].providers[0].kms: Forbidden: this server calls no key management service; use aesgcm or secretbox, or leave the configuration out and keep the key file on a disk that is unlocked at boot"
        ],
    );
}

#[test]
fn another_kind_or_an_unknown_field_is_refused() {
    let other = configuration("[]").replace("EncryptionConfiguration", "Policy");
    let told = parse(&other).unwrap_err();
    assert!(told.contains("not EncryptionConfiguration of"), "{told}");
    let told = parse(&configuration("[{resource: [secrets]}]")).unwrap_err();
    assert!(told.contains("unknown field `resource`"), "{told}");
}
