//! Which file is chosen, and what is read from it.

use super::{Network, find};
use crate::network::cni::testing::Node;
use expect_test::{Expect, expect};
use std::fs;
use std::process::Command;

fn show(network: &Network) -> String {
    let plugins = network.plugins.iter().map(|plugin| plugin.description());
    let plugins: Vec<_> = plugins.collect();
    let mut text = format!("{} {} ", network.name, network.version.text());
    text.push_str(&plugins.join(" > "));
    if network.disable_check {
        text.push_str(", no CHECK");
    }
    if network.disable_gc {
        text.push_str(", no GC");
    }
    text
}

fn found(node: &Node) -> String {
    match find(&node.path("net.d")) {
        Ok(Some(network)) => show(&network),
        Ok(None) => "none".into(),
        Err(error) => {
            let directory = node.path("net.d").display().to_string();
            crate::error::chain(&error).replace(&directory, "")
        }
    }
}

fn check(files: &[(&str, &str)], expected: Expect) {
    let node = Node::new();
    for (name, text) in files {
        node.configure(name, text);
    }
    expected.assert_eq(&found(&node));
}

/// One file, by its text.
fn check_list(text: &str, expected: Expect) {
    check(&[("10-a.conflist", text)], expected);
}

const LIST: &str = r#"{"cniVersion": "1.0.0", "name": "list", "plugins": [
    {"type": "bridge", "name": "own"}, {"type": "portmap"}]}"#;
const SINGLE: &str = r#"{"cniVersion": "0.3.1", "name": "single", "type": "ptp"}"#;

#[test]
fn the_first_file_by_name_counts() {
    check(&[], expect!["none"]);
    check(
        &[("20-b.conf", SINGLE), ("10-a.conflist", LIST)],
        expect![[r#"list 1.0.0 type="bridge" name="own" > type="portmap""#]],
    );
    check(
        &[("20-b.conflist", LIST), ("10-a.json", SINGLE)],
        expect![[r#"single 0.3.1 type="ptp" name="single""#]],
    );
    check(
        &[("00-a.conf.bak", "{"), ("05-b", "{"), ("9.conf", SINGLE)],
        expect![[r#"single 0.3.1 type="ptp" name="single""#]],
    );
    // The first, even when it is of no use: nobody asked for the second.
    check(
        &[("10-a.conflist", "{"), ("20-b.conf", SINGLE)],
        expect![
            "failed to load CNI config file /10-a.conflist: it is no JSON: EOF while parsing an object at line 1 column 1"
        ],
    );
}

#[test]
fn nobody_waits_for_a_fifo() {
    let node = Node::new();
    node.configure("20-b.conf", SINGLE);
    let made = Command::new("mkfifo")
        .arg(node.path("net.d/10-a.conf"))
        .status();
    assert!(made.unwrap().success());
    let expected = "failed to load CNI config file /10-a.conf: it is no regular file";
    assert_eq!(found(&node), expected);
}

#[test]
fn directories_are_no_files_and_need_not_be_there() {
    let node = Node::new();
    fs::create_dir(node.path("net.d/00-a.conf")).unwrap();
    assert_eq!(found(&node), "none");
    fs::remove_dir_all(node.path("net.d")).unwrap();
    assert_eq!(found(&node), "none");
    fs::write(node.path("net.d"), "").unwrap();
    assert!(found(&node).starts_with("cannot read"), "{}", found(&node));
}

#[test]
fn the_greatest_version_that_is_known_counts() {
    let list =
        |versions: &str| format!(r#"{{{versions} "name": "n", "plugins": [{{"type": "a"}}]}}"#);
    check_list(
        &list(r#""cniVersion": "0.3.0","#),
        expect![[r#"n 0.3.0 type="a""#]],
    );
    check_list(
        &list(r#""cniVersion": "0.4.0", "cniVersions": ["0.3.1", "1.1.0", "1.2.0"],"#),
        expect![[r#"n 1.1.0 type="a""#]],
    );
    check_list(
        &list(r#""cniVersions": ["2.0.0", "1.0.0"],"#),
        expect![[r#"n 1.0.0 type="a""#]],
    );
    check_list(
        &list(""),
        expect![[
            r#"failed to load CNI config file /10-a.conflist: it has no "cniVersion"; one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0 is needed"#
        ]],
    );
    check_list(
        &list(r#""cniVersion": "0.2.0", "cniVersions": ["2.0.0"],"#),
        expect![
            "failed to load CNI config file /10-a.conflist: its CNI version 0.2.0, 2.0.0 is not known; one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0 is needed"
        ],
    );
    check_list(
        &list(r#""cniVersion": 1,"#),
        expect![[r#"failed to load CNI config file /10-a.conflist: its "cniVersion" is no text"#]],
    );
}

#[test]
fn what_is_wrong_is_told() {
    let of = |fields: &str| format!(r#"{{"cniVersion": "1.0.0", {fields}}}"#);
    check_list(
        &of(r#""plugins": [{"type": "a"}]"#),
        expect![[r#"failed to load CNI config file /10-a.conflist: it has no "name""#]],
    );
    check_list(
        &of(r#""name": "../x", "plugins": [{"type": "a"}]"#),
        expect![[
            r#"failed to load CNI config file /10-a.conflist: its name "../x" has characters that no network has"#
        ]],
    );
    check_list(
        &of(r#""name": "n", "plugins": []"#),
        expect!["failed to load CNI config file /10-a.conflist: it has no plugins"],
    );
    check_list(
        &of(r#""name": "n", "plugins": {"type": "a"}"#),
        expect![[r#"failed to load CNI config file /10-a.conflist: its "plugins" are no list"#]],
    );
    check_list(
        &of(r#""name": "n", "plugins": [{"name": "a"}]"#),
        expect![[r#"failed to load CNI config file /10-a.conflist: a plugin has no "type""#]],
    );
    check_list(
        &of(r#""name": "n", "plugins": [{"type": "../../bin/sh"}]"#),
        expect!["failed to load CNI config file /10-a.conflist: invalid plugin name: ../../bin/sh"],
    );
    check_list(
        "[]",
        expect!["failed to load CNI config file /10-a.conflist: it is no JSON object"],
    );
    check_list(
        &of(r#""name": "n", "loadOnlyInlinedPlugins": true"#),
        expect![[r#"failed to load CNI config file /10-a.conflist: it has no "plugins""#]],
    );
    check_list(
        &of(r#""name": "n", "disableCheck": "perhaps", "plugins": [{"type": "a"}]"#),
        expect![[
            r#"failed to load CNI config file /10-a.conflist: its "disableCheck" is neither true nor false"#
        ]],
    );
    check(
        &[("10-a.conf", LIST)],
        expect![
            "failed to load CNI config file /10-a.conf: it is a list of plugins, and its name must end in .conflist"
        ],
    );
    let long = format!("{{{}", " ".repeat(1 << 20));
    check_list(
        &long,
        expect!["failed to load CNI config file /10-a.conflist: it is longer than 1048576 bytes"],
    );
}

#[test]
fn a_list_says_what_is_not_to_be_asked() {
    check_list(
        r#"{"cniVersion": "1.1.0", "name": "n", "disableCheck": true, "disableGC": "True",
            "plugins": [{"type": "a"}]}"#,
        expect![[r#"n 1.1.0 type="a", no CHECK, no GC"#]],
    );
}

#[test]
fn a_directory_of_the_networks_name_adds_plugins() {
    let node = Node::new();
    node.configure("10-a.conflist", LIST);
    fs::create_dir(node.path("net.d/list")).unwrap();
    node.configure("list/20.conf", r#"{"type": "second"}"#);
    node.configure("list/10.conf", r#"{"type": "first"}"#);
    assert_eq!(
        found(&node),
        r#"list 1.0.0 type="bridge" name="own" > type="portmap" > type="first" > type="second""#
    );
    node.configure("list/30.conf", "{}");
    assert_eq!(
        found(&node),
        r#"failed to load CNI config file /list/30.conf: a plugin has no "type""#
    );
    let alone = LIST.replacen('{', r#"{"loadOnlyInlinedPlugins": true, "#, 1);
    node.configure("10-a.conflist", &alone);
    assert!(
        found(&node).ends_with(r#"type="portmap""#),
        "{}",
        found(&node)
    );
}
