//! The command line without a cluster: bad values, completion, version.

use crate::lab::{all_text, coracle};
use std::process::{Command, Output};

fn call(arguments: &[&str]) -> Output {
    Command::new(coracle()).args(arguments).output().unwrap()
}

/// Exit 64 and one line that names the flag, the value and what is right.
fn refused(arguments: &[&str], words: &[&str]) {
    let output = call(arguments);
    let text = all_text(&output);
    assert_eq!(output.status.code(), Some(64), "{arguments:?}: {text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{arguments:?}: {text}");
    for word in words {
        assert!(
            text.contains(word),
            "{arguments:?} should name {word:?}: {text}"
        );
    }
}

#[test]
fn a_bad_value_is_refused_in_one_line() {
    refused(
        &["server", "--listen", "nowhere"],
        &["--listen", "nowhere", "0.0.0.0:6443"],
    );
    refused(
        &["server", "--cluster-cidr", "10.42.0.0"],
        &["--cluster-cidr", "10.42.0.0/16"],
    );
    refused(
        &["server", "--service-cidr", "10.42.128.0/17"],
        &["--service-cidr", "overlap"],
    );
    refused(
        &["server", "--disable", "tea"],
        &["--disable", "tea", "node-lifecycle"],
    );
    refused(
        &["server", "--node-monitor-grace-period", "soon"],
        &["soon", "40s"],
    );
    refused(&["server", "--no-such-flag"], &["--no-such-flag"]);
    refused(&["agent"], &["--server", "https://gateway:6443"]);
    refused(
        &["agent", "--server", "http://x"],
        &["--server", "http://x", "https://"],
    );
    refused(
        &["agent", "--server", "https://x", "--token", "x"],
        &["--token", "token create"],
    );
    refused(
        &["agent", "--server", "https://x", "--node-name", "No_Such"],
        &["--node-name", "No_Such"],
    );
    refused(
        &[
            "agent",
            "--server",
            "https://x",
            "--node-taint",
            "a=b:Never",
        ],
        &["--node-taint", "NoSchedule"],
    );
    refused(&["up", "--log", "a=b=c"], &["--log", "info"]);
    refused(
        &["server", "--config", "/no/such/file"],
        &["--config", "/no/such/file"],
    );
}

#[test]
fn who_names_no_command_is_shown_what_there_is() {
    for (arguments, part) in [
        (&[][..], "server"),
        (&["image"], "import"),
        (&["token"], "list"),
    ] {
        let output = call(arguments);
        let text = all_text(&output);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {text}");
        assert!(text.contains("Usage:") && text.contains(part), "{text}");
    }
    assert!(all_text(&call(&["help"])).contains("Commands:"));
}

#[test]
fn a_mistyped_directory_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("typo");
    let given = path.display().to_string();
    refused(
        &["image", "list", "--data-dir", &given],
        &["--data-dir", &given],
    );
    assert!(!path.exists());
}

#[test]
fn a_setting_in_a_file_is_checked_like_a_flag() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.yaml");
    let path = file.display().to_string();
    std::fs::write(&file, "listen: nowhere\n").unwrap();
    refused(&["server", "--config", &path], &["--listen", "nowhere"]);
    std::fs::write(&file, "colour: blue\n").unwrap();
    refused(&["server", "--config", &path], &["colour"]);
    std::fs::write(&file, "[1, 2\n").unwrap();
    refused(&["server", "--config", &path], &["--config", "YAML"]);
}

/// Of a machine that runs these tests nothing has to be put right.
#[test]
fn the_doctor_finds_this_machine_fit_and_says_what_is_wrong_with_another() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let listen = ["--listen", "127.0.0.1:0"];
    let doctor = |directory: &std::path::Path| {
        let directory = directory.display().to_string();
        call(&[&["doctor", "--data-dir", &directory], &listen[..]].concat())
    };
    let output = doctor(&data);
    let text = all_text(&output);
    assert!(output.status.success(), "{text}");
    let checks = [
        "data directory",
        "disk space",
        "disk speed",
        "certificates",
        "clock",
        "kernel",
        "cgroups",
    ];
    for check in checks {
        let row = text.lines().find(|line| line.starts_with(check));
        assert!(
            row.is_some_and(|row| !row.contains("fail")),
            "{check}: {text}"
        );
    }
    assert!(!data.exists(), "it made what it looked at");

    std::fs::create_dir_all(data.join("server/pki")).unwrap();
    std::fs::write(data.join("server/pki/ca.crt"), "torn").unwrap();
    let output = doctor(&data);
    let text = all_text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("ca.crt is no certificate"), "{text}");
    assert!(text.contains("1 thing must be put right first"), "{text}");
}

#[test]
fn completion_and_version_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let output = call(&["completion", shell]);
        assert!(output.status.success());
        assert!(all_text(&output).contains("node-monitor-grace-period"));
    }
    let version = all_text(&call(&["version"]));
    assert!(
        version.starts_with("coracle ") && version.contains("v1.36"),
        "{version}"
    );
}

#[test]
fn the_binary_is_one_static_file() {
    let output = Command::new("ldd").arg(coracle()).output().unwrap();
    let text = all_text(&output);
    let is_static = text.contains("statically linked") || text.contains("not a dynamic executable");
    assert!(is_static, "{text}");
}
