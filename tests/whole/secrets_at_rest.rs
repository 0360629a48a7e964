//! Secrets on the disk of a running server: nowhere in plain, under a key that changes, and safe
//! from what ends a change half way.

use crate::lab::{Cluster, Host, Lab, PATIENCE, all_text, coracle, now, wait};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const PLAIN: &str = "hunter2-correct-horse-battery-staple";
/// `PLAIN` as a Secret has it.
const ENCODED: &str = "aHVudGVyMi1jb3JyZWN0LWhvcnNlLWJhdHRlcnktc3RhcGxl";
const OPEN: &str = "a-config-map-is-in-the-open";
const SECRETS_OF_A_ROTATION: usize = 300;
const ROUNDS: u64 = 6;
const ROUNDS_MAX: u64 = 30;

fn secret(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{ name: {name} }}\nstringData: {{ word: {PLAIN} }}\n"
    )
}

fn config_map() -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: open }}\ndata: {{ word: {OPEN} }}\n"
    )
}

fn holds(path: &Path, text: &str) -> bool {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        return entries
            .into_iter()
            .any(|entry| holds(&entry.unwrap().path(), text));
    }
    // A database may end a file between the look and the read.
    let content = std::fs::read(path).unwrap_or_default();
    content
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn server_directory(cluster: &Cluster) -> PathBuf {
    cluster.host.data_dir.join("server")
}

fn key_file(host: &Host) -> PathBuf {
    host.data_dir.join("server/pki/secrets.key")
}

fn keys(host: &Host) -> Vec<String> {
    let text = std::fs::read_to_string(key_file(host)).unwrap_or_default();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Starts the server of a host again and waits until it answers.
fn start_again(lab: &mut Lab, cluster: &mut Cluster) {
    let data_dir = cluster.host.data_dir.display().to_string();
    cluster.process = lab.spawn(&cluster.host, &["server", "--data-dir", &data_dir]);
    wait("the server answers again", || {
        cluster.try_kubectl(&["get", "--raw", "/readyz"]).ok()
    });
}

fn rotate(host: &Host) -> std::process::Command {
    let mut command = host.command(coracle());
    command.args(["secrets", "rotate", "--data-dir"]);
    command.arg(&host.data_dir).stdin(Stdio::null());
    command
}

#[test]
fn nothing_of_a_secret_is_on_the_disk_before_and_after_its_key_changed() {
    let mut lab = Lab::new();
    let mut cluster = lab.server("sealed", &[]);
    for name in ["kept", "gone"] {
        cluster.apply(&secret(name));
        cluster.kubectl(&["label", "secret", name, "a=b"]);
    }
    cluster.kubectl(&["delete", "secret", "gone"]);
    cluster.apply(&config_map());
    let directory = server_directory(&cluster);
    let is_sealed = || !holds(&directory, PLAIN) && !holds(&directory, ENCODED);
    assert!(is_sealed());
    assert!(holds(&directory, OPEN), "the search finds what is there");
    let word = ["secret", "kept"];
    cluster.wait_value(&word, "{.data.word}", ENCODED);

    let before = keys(&cluster.host);
    let output = rotate(&cluster.host).output().unwrap();
    assert!(output.status.success(), "{}", all_text(&output));
    assert!(all_text(&output).contains("encrypted with a new key"));
    let after = keys(&cluster.host);
    assert!(after.len() == 1 && after != before);
    let old_id = before[0].split(' ').next().unwrap();
    assert!(!holds(&directory, old_id), "nothing names the old key");
    cluster.wait_value(&word, "{.data.word}", ENCODED);
    assert!(lab.process(cluster.process).terminate().success());
    assert!(is_sealed());

    // Without its key the server does not start, and says which file it misses.
    let (file, aside) = (key_file(&cluster.host), lab.path("aside"));
    std::fs::rename(&file, &aside).unwrap();
    let data_dir = cluster.host.data_dir.display().to_string();
    let process = lab.spawn(&cluster.host, &["server", "--data-dir", &data_dir]);
    let process = lab.process(process);
    wait("the server gives up", || process.has_ended().then_some(()));
    let log = process.log_text();
    assert!(log.contains(&file.display().to_string()), "{log}");
    assert!(log.contains("Nothing was changed"), "{log}");
    std::fs::rename(&aside, &file).unwrap();
    start_again(&mut lab, &mut cluster);
    cluster.wait_value(&word, "{.data.word}", ENCODED);
}

#[test]
fn a_kill_in_the_middle_of_a_rotation_loses_nothing_and_the_next_start_finishes_it() {
    let mut lab = Lab::new();
    let mut cluster = lab.server("killed", &[]);
    cluster.apply(&secret("kept"));
    // So many that to seal them anew takes longer than to see that it began.
    let others: Vec<_> = (0..SECRETS_OF_A_ROTATION)
        .map(|number| secret(&format!("other-{number}")))
        .collect();
    cluster.apply(&others.join("---\n"));
    let mut kills_before_the_end = 0;
    // More often where the machine gives a kill no time before the end.
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS && kills_before_the_end > 0 {
            break;
        }
        let before = keys(&cluster.host);
        let mut rotating = rotate(&cluster.host)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The new key is in the file, and the old one still is.
        let end = now() + PATIENCE;
        while keys(&cluster.host) == before {
            assert!(now() < end, "the rotation did not begin");
        }
        std::thread::sleep(Duration::from_millis(round % ROUNDS * 3));
        let left = keys(&cluster.host).len();
        lab.process(cluster.process).kill();
        drop(rotating.kill());
        rotating.wait().unwrap();
        kills_before_the_end += usize::from(left == 2);
        start_again(&mut lab, &mut cluster);
        cluster.wait_value(&["secret", "kept"], "{.data.word}", ENCODED);
        wait("one key is left", || {
            (keys(&cluster.host).len() == 1).then_some(())
        });
        let newest = keys(&cluster.host);
        assert_ne!(newest, before);
    }
    assert!(kills_before_the_end > 0, "no kill fell into a rotation");
    let directory = server_directory(&cluster);
    assert!(!holds(&directory, PLAIN) && !holds(&directory, ENCODED));
}

#[test]
fn a_configuration_of_upstreams_is_taken_and_a_bad_one_is_named() {
    let mut lab = Lab::new();
    let host = lab.host("configured");
    let file = lab.path("encryption.yaml");
    let text = |providers: &str| {
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
             - resources: [configmaps]\n  providers: {providers}\n"
        )
    };
    std::fs::write(&file, text("[{kms: {name: x, endpoint: 'unix:///x'}}]")).unwrap();
    let (data_dir, path) = (
        host.data_dir.display().to_string(),
        file.display().to_string(),
    );
    let arguments = [
        "server",
        "--data-dir",
        &data_dir,
        "--encryption-provider-config",
        &path,
    ];
    let refused = host.command(coracle()).args(arguments).output().unwrap();
    let told = all_text(&refused);
    assert!(!refused.status.success() && told.contains(&path), "{told}");
    assert!(told.contains("calls no key management service"), "{told}");
    let key = "c2VjcmV0IGlzIHNlY3VyZSBhbmQgMzIgYnl0ZXMhISE=";
    let providers = format!("[{{aesgcm: {{keys: [{{name: one, secret: {key}}}]}}}}]");
    std::fs::write(&file, text(&providers)).unwrap();
    let process = lab.spawn(&host, &arguments);
    let cluster = Cluster {
        host,
        process,
        kubectl: crate::lab::kubectls()[0].clone(),
    };
    wait("the server answers", || {
        cluster.try_kubectl(&["get", "--raw", "/readyz"]).ok()
    });
    cluster.apply(&config_map());
    cluster.apply(&secret("plain-as-configured"));
    let directory = server_directory(&cluster);
    assert!(!holds(&directory, OPEN) && holds(&directory, ENCODED));
    let refused = rotate(&cluster.host).output().unwrap();
    assert!(all_text(&refused).contains("put a new key in front there"));
}
