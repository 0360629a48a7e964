//! Snapshots over the real binary: saved with and without a server, carried to another machine,
//! refused when they are damaged, and killed half way.

use crate::lab::{Cluster, Host, Lab, all_text, coracle, kubectls, wait};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const WORDS: &str = "correct horse battery staple";
const SECRET: &str =
    "apiVersion: v1\nkind: Secret\nmetadata: { name: kept }\nstringData: { word: hunter2 }\n";
/// What is in it, as the API has it.
const ENCODED: &str = "aHVudGVyMg==";
const WORD: &str = "{.data.word}";
const SECRET_NAME: [&str; 2] = ["secret", "kept"];

/// A file with a passphrase.
fn words(lab: &Lab, text: &str) -> PathBuf {
    let file = lab.path(&format!("words-{}", text.len()));
    std::fs::write(&file, text).unwrap();
    file
}

fn snapshot(host: &Host, arguments: &[&str], passphrase: Option<&Path>) -> Command {
    let mut command = host.command(coracle());
    command.arg("snapshot").args(arguments);
    command.arg("--data-dir").arg(&host.data_dir);
    if let Some(file) = passphrase {
        command.arg("--passphrase-file").arg(file);
    }
    command.stdin(Stdio::null());
    command
}

fn outcome(host: &Host, arguments: &[&str], passphrase: Option<&Path>) -> Output {
    snapshot(host, arguments, passphrase).output().unwrap()
}

#[track_caller]
fn done(host: &Host, arguments: &[&str], passphrase: Option<&Path>) -> String {
    let output = outcome(host, arguments, passphrase);
    let text = all_text(&output);
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

#[track_caller]
fn refused(host: &Host, arguments: &[&str], passphrase: Option<&Path>, why: &str) {
    let output = outcome(host, arguments, passphrase);
    let text = all_text(&output);
    assert!(!output.status.success(), "{arguments:?}: {text}");
    assert!(text.contains(why), "{arguments:?}: {text}");
}

/// A server on a host that has a data directory already.
fn serve(lab: &mut Lab, host: &Host) -> Cluster {
    let data_dir = host.data_dir.display().to_string();
    let process = lab.spawn(host, &["server", "--data-dir", &data_dir]);
    let cluster = Cluster {
        host: host.clone(),
        process,
        kubectl: kubectls()[0].clone(),
    };
    wait("the server answers", || {
        let log = lab.process(process);
        assert!(!log.has_ended(), "{}", log.log_text());
        cluster.try_kubectl(&["get", "--raw", "/readyz"]).ok()
    });
    cluster
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

fn store_of(host: &Host) -> PathBuf {
    host.data_dir.join("server/store")
}

fn pki_of(host: &Host) -> PathBuf {
    host.data_dir.join("server/pki")
}

#[test]
fn a_cluster_moves_to_another_machine_in_one_file_and_is_known_to_its_clients_there() {
    let mut lab = Lab::new();
    let old = lab.server("old", &[]);
    old.apply(SECRET);
    let (good, other) = (words(&lab, WORDS), words(&lab, "something else altogether"));
    let (running, stopped) = (lab.path("running"), lab.path("stopped"));
    let told = done(&old.host, &["save", path(&running)], Some(&good));
    assert!(
        told.contains("restores anywhere with the passphrase"),
        "{told}"
    );
    let told = done(&old.host, &["verify", path(&running)], Some(&good));
    assert!(
        told.contains("opened") && told.contains("encrypted"),
        "{told}"
    );
    let bytes = std::fs::read(&running).unwrap();
    let holds = |text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(holds("kube-root-ca.crt") && !holds("PRIVATE KEY") && !holds(ENCODED));

    // From elsewhere, by a kubeconfig.
    let elsewhere = lab.host("elsewhere");
    let kubeconfig = old.kubeconfig();
    let copy = lab.path("copy");
    let from = ["save", "--kubeconfig", path(&kubeconfig), path(&copy)];
    done(&elsewhere, &from, Some(&good));
    done(&elsewhere, &["verify", path(&copy)], Some(&good));

    old.kubectl(&["delete", "secret", "kept"]);
    assert!(lab.process(old.process).terminate().success());
    done(&old.host, &["save", path(&stopped)], Some(&good));
    let ca = std::fs::read(pki_of(&old.host).join("ca.crt")).unwrap();

    let new = lab.host("new");
    let restore = ["restore", path(&running)];
    refused(&new, &restore, None, "taken with --passphrase-file");
    refused(
        &new,
        &restore,
        Some(&other),
        "the passphrase does not open the keys",
    );
    assert!(!new.data_dir.exists(), "nothing was changed");
    done(&new, &restore, Some(&good));
    assert_eq!(std::fs::read(pki_of(&new).join("ca.crt")).unwrap(), ca);
    let moved = serve(&mut lab, &new);
    moved.wait_value(&SECRET_NAME, WORD, ENCODED);
    // Who had a kubeconfig of the old machine is known by the new one.
    let url = format!("https://{}:6443", new.address);
    let asked = [
        "--kubeconfig",
        path(&kubeconfig),
        "--server",
        &url,
        "get",
        "secret",
        "kept",
    ];
    let output = moved.host.command(&moved.kubectl).args(asked).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", all_text(&output));

    // The later one, in the place of it.
    let later = ["restore", path(&stopped), "--replace"];
    refused(&new, &later, Some(&good), "in use");
    assert!(lab.process(moved.process).terminate().success());
    done(&new, &later, Some(&good));
    let moved = serve(&mut lab, &new);
    let gone = moved.try_kubectl(&["get", "secret", "kept"]).unwrap_err();
    assert!(gone.contains("not found"), "{gone}");
}

#[test]
fn a_snapshot_without_keys_restores_where_they_are_and_says_what_is_missing_elsewhere() {
    let mut lab = Lab::new();
    let old = lab.server("old", &[]);
    old.apply(SECRET);
    let file = lab.path("plain");
    let told = done(&old.host, &["save", path(&file)], None);
    assert!(told.contains("the cluster's keys are not in it"), "{told}");
    let (nothing, foreign) = (lab.host("nothing"), lab.server("foreign", &[]));
    assert!(lab.process(foreign.process).terminate().success());
    let restore = ["restore", path(&file)];
    refused(&nothing, &restore, None, "copy server/pki of the machine");
    let over = ["restore", path(&file), "--replace"];
    refused(&foreign.host, &over, None, "those of another cluster");
    // With the keys carried by hand it is whole.
    std::fs::create_dir_all(nothing.data_dir.join("server")).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .args([pki_of(&old.host), pki_of(&nothing)])
        .status();
    assert!(copied.unwrap().success());
    done(&nothing, &restore, None);
    let moved = serve(&mut lab, &nothing);
    moved.wait_value(&SECRET_NAME, WORD, ENCODED);
    // Keys that a foreign cluster had are kept beside those that come with a snapshot.
    let good = words(&lab, WORDS);
    let whole = lab.path("whole");
    done(&old.host, &["save", path(&whole)], Some(&good));
    let over = ["restore", path(&whole), "--replace"];
    let told = done(&foreign.host, &over, Some(&good));
    assert!(
        told.contains("pki.replaced-0") && told.contains("database.replaced-0"),
        "{told}"
    );
    serve(&mut lab, &foreign.host).wait_value(&SECRET_NAME, WORD, ENCODED);
}

#[test]
fn a_damaged_file_is_refused_and_a_damaged_store_is_replaced_and_kept() {
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = server.host.clone();
    server.apply(SECRET);
    let (good, file) = (words(&lab, WORDS), lab.path("good"));
    done(&host, &["save", path(&file)], Some(&good));
    assert!(lab.process(server.process).terminate().success());

    let bytes = std::fs::read(&file).unwrap();
    let bad = lab.path("bad");
    let restore = ["restore", path(&bad), "--replace"];
    for place in [3, 40, bytes.len() / 3, bytes.len() / 2, bytes.len() - 5] {
        let mut flipped = bytes.clone();
        flipped[place] ^= 4;
        std::fs::write(&bad, flipped).unwrap();
        refused(&host, &["verify", path(&bad)], None, "is damaged");
        refused(&host, &restore, Some(&good), "nothing was changed");
    }
    for length in [0, 25, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&bad, &bytes[..length]).unwrap();
        refused(&host, &restore, Some(&good), "it is cut off");
    }
    let sound = ["restore", path(&file)];
    refused(&host, &sound, Some(&good), "add --replace");
    assert!(!store_of(&host).join("database.replaced-0").exists());

    let database = store_of(&host).join("database/db");
    let mut content = std::fs::read(&database).unwrap();
    for place in (0..content.len()).step_by(97) {
        content[place] ^= 0x55;
    }
    std::fs::write(&database, &content).unwrap();
    refused(&host, &["save", path(&bad)], None, "is damaged");
    let told = done(&host, &sound, Some(&good));
    assert!(told.contains("database.replaced-0"), "{told}");
    let kept = store_of(&host).join("database.replaced-0/db");
    assert!(kept.exists(), "what was there is kept");
    serve(&mut lab, &host).wait_value(&SECRET_NAME, WORD, ENCODED);
}

/// At any moment: the store is the old one, or the new one, or refused; never an empty one.
#[test]
fn a_kill_while_saving_or_restoring_leaves_no_half_of_anything() {
    const ROUNDS: u64 = 12;
    let mut lab = Lab::new();
    let server = lab.server("server", &[]);
    let host = server.host.clone();
    server.apply(SECRET);
    let file = lab.path("good");
    done(&host, &["save", path(&file)], None);
    assert!(lab.process(server.process).terminate().success());
    let (half, looked) = (lab.path("half"), lab.path("looked"));
    let killed = |arguments: &[&str], round: u64| {
        let mut command = snapshot(&host, arguments, None);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 9));
        drop(child.kill());
        child.wait().unwrap();
    };
    for round in 0..ROUNDS {
        killed(&["save", path(&half)], round);
        if half.exists() {
            done(&host, &["verify", path(&half)], None);
            std::fs::remove_file(&half).unwrap();
        }
        killed(&["restore", path(&file), "--replace"], round);
        // What was killed may be letting go of its files still.
        let output = wait("the store is free", || {
            let output = outcome(&host, &["save", path(&looked)], None);
            (!all_text(&output).contains("was asked")).then_some(output)
        });
        let text = all_text(&output);
        match output.status.success() {
            true => {
                let told = done(&host, &["verify", path(&looked)], None);
                assert!(!told.contains("0, 0 of them"), "an empty store: {told}");
            }
            false => {
                assert!(text.contains("is damaged"), "{text}");
                done(&host, &["restore", path(&file)], None);
            }
        }
    }
    done(&host, &["restore", path(&file), "--replace"], None);
    serve(&mut lab, &host).wait_value(&SECRET_NAME, WORD, ENCODED);
}

#[test]
fn a_server_takes_snapshots_by_itself_and_the_list_tells_sound_ones_from_damaged_ones() {
    let mut lab = Lab::new();
    let host = lab.host("server");
    let told = done(&host, &["list"], None);
    assert!(told.contains("no snapshots in"), "{told}");
    let ring = ["--snapshot-interval", "10s", "--snapshot-retention", "2"];
    let server = lab.server_on(host.clone(), &ring);
    server.apply(SECRET);
    let sound = |told: &str| told.lines().filter(|line| line.ends_with("sound")).count();
    for (name, count) in [("one", 1), ("two", 2)] {
        // A server that nobody writes to has nothing new to keep.
        server.apply(&SECRET.replace("kept", name));
        wait("a snapshot is taken", || {
            let told = done(&host, &["list"], None);
            (sound(&told) >= count).then_some(())
        });
    }
    assert!(lab.process(server.process).terminate().success());
    let told = done(&host, &["list"], None);
    let files: Vec<PathBuf> = told
        .lines()
        .filter_map(|line| {
            line.split(' ')
                .next()
                .filter(|name| name.ends_with(".snapshot"))
        })
        .map(|name| store_of(&host).join("snapshots").join(name))
        .collect();
    assert_eq!(files.len(), 2, "{told}");
    let mut bytes = std::fs::read(&files[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&files[0], bytes).unwrap();
    let told = done(&host, &["list"], None);
    assert!(sound(&told) == 1 && told.contains("is damaged"), "{told}");
    refused(
        &host,
        &["restore", path(&files[0]), "--replace"],
        None,
        "is damaged",
    );
    done(&host, &["restore", path(&files[1]), "--replace"], None);
    serve(&mut lab, &host);
}
