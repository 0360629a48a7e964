//! Results of each version, and what plugins say when they fail.

use super::{addresses, failure, read};
use crate::network::cni::configuration::Version;
use expect_test::{Expect, expect};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

const LINKS: &str = r#""interfaces": [{"name": "cni0"}, {"name": "eth0", "sandbox": "/x"}]"#;

/// The addresses of `eth0`, and the result as the next plugin gets it.
fn check(said: &str, version: Version, expected: Expect) {
    let shown = match read(said.as_bytes(), version) {
        Ok(outcome) => {
            let found = addresses(&outcome, "eth0").unwrap();
            format!("{found:?} {}", serde_json::Value::from(outcome))
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn results_of_all_versions_are_read() {
    let old = |version: &str| {
        format!(
            r#"{{"cniVersion": "{version}", {LINKS}, "ips": [
                {{"version": "4", "interface": 1, "address": "10.1.0.2/16", "gateway": "10.1.0.1"}}]}}"#
        )
    };
    for version in [Version::V0_3_0, Version::V0_3_1, Version::V0_4_0] {
        let outcome = read(old(version.text()).as_bytes(), version).unwrap();
        let found = addresses(&outcome, "eth0").unwrap();
        assert_eq!(format!("{found:?}"), "[10.1.0.2]", "{version:?}");
        assert_eq!(outcome["cniVersion"], version.text());
        assert_eq!(outcome["ips"][0]["version"], "4");
    }
    for version in [Version::V1_0_0, Version::V1_1_0] {
        let text = old(version.text()).replace(r#""version": "4", "#, "");
        let outcome = read(text.as_bytes(), version).unwrap();
        let found = addresses(&outcome, "eth0").unwrap();
        assert_eq!(format!("{found:?}"), "[10.1.0.2]", "{version:?}");
    }
}

#[test]
fn a_result_of_another_version_becomes_one_of_the_networks() {
    check(
        r#"{"cniVersion": "0.4.0", "ips": [{"version": "6", "address": "fd00::2/64"}]}"#,
        Version::V1_1_0,
        expect![[r#"[fd00::2] {"cniVersion":"1.1.0","ips":[{"address":"fd00::2/64"}]}"#]],
    );
    check(
        r#"{"cniVersion": "1.0.0", "ips": [{"address": "fd00::2/64"}, {"address": "10.1.0.2/16"}],
            "own": {"x": 1}}"#,
        Version::V0_3_1,
        expect![[
            r#"[10.1.0.2, fd00::2] {"cniVersion":"0.3.1","ips":[{"address":"fd00::2/64","version":"6"},{"address":"10.1.0.2/16","version":"4"}],"own":{"x":1}}"#
        ]],
    );
    check(
        r#"{"ips": [{"address": "10.1.0.2/16"}]}"#,
        Version::V1_0_0,
        expect![[r#"[10.1.0.2] {"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/16"}]}"#]],
    );
    check(
        r#"{"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.2/16"}}"#,
        Version::V0_4_0,
        expect![[r#"unsupported CNI result version "0.2.0""#]],
    );
}

#[test]
fn only_addresses_of_the_pods_link_are_its_own() {
    check(
        &format!(
            r#"{{"cniVersion": "1.0.0", {LINKS}, "ips": [
                {{"interface": 0, "address": "10.1.0.1/16"}},
                {{"interface": 1, "address": "fd00::2/64"}},
                {{"interface": 7, "address": "10.9.0.1/16"}},
                {{"interface": 1, "address": "10.1.0.2/16"}}]}}"#
        ),
        Version::V1_0_0,
        expect![[
            r#"[10.1.0.2, fd00::2] {"cniVersion":"1.0.0","interfaces":[{"name":"cni0"},{"name":"eth0","sandbox":"/x"}],"ips":[{"address":"10.1.0.1/16","interface":0},{"address":"fd00::2/64","interface":1},{"address":"10.9.0.1/16","interface":7},{"address":"10.1.0.2/16","interface":1}]}"#
        ]],
    );
    check(
        r#"{"cniVersion": "1.0.0"}"#,
        Version::V1_0_0,
        expect![[r#"[] {"cniVersion":"1.0.0"}"#]],
    );
}

#[test]
fn what_is_no_result_is_told() {
    check(
        "",
        Version::V1_0_0,
        expect![[r#"its result is no JSON object: """#]],
    );
    check(
        "configuring eth0\n{}",
        Version::V1_0_0,
        expect![[r#"its result is no JSON object: "configuring eth0\n{}""#]],
    );
    check(
        "[1]",
        Version::V1_0_0,
        expect![[r#"its result is no JSON object: "[1]""#]],
    );
    check(
        r#"{"ips": [{"address": "10.1.0.2"}]}"#,
        Version::V1_0_0,
        expect![[r#"its result has an address that is none: {"address":"10.1.0.2"}"#]],
    );
    let long = "x".repeat(4096);
    let error = read(long.as_bytes(), Version::V1_0_0).unwrap_err();
    assert!(error.to_string().len() < 600, "{error}");
}

#[test]
fn failures_are_in_libcnis_words() {
    let code = |code: i32| ExitStatus::from_raw(code << 8);
    let said =
        |output: &str, complaint: &str| failure(output.as_bytes(), complaint.as_bytes(), code(1));
    assert_eq!(
        said(
            r#"{"code": 11, "msg": "no addresses", "details": "in 10.1/16"}"#,
            "x"
        ),
        "no addresses; in 10.1/16"
    );
    assert_eq!(said(r#"{"code": 100, "msg": "broken"}"#, ""), "broken");
    assert_eq!(
        said("", "panic!"),
        r#"netplugin failed: "panic!": exit status: 1"#
    );
    assert_eq!(
        failure(b"", b"", ExitStatus::from_raw(9)),
        "netplugin failed with no error message: signal: 9 (SIGKILL)"
    );
    assert_eq!(
        said("oh", ""),
        "netplugin failed but error parsing its diagnostic message \"oh\": expected value at line \
         1 column 1"
    );
}
