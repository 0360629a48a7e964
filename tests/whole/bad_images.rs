//! Images and registries that are bad in each way: the pod says what is wrong, the node stays
//! Ready, other pods go on, and nothing is written outside of an image.

use crate::hostile_registry::{Paths, Registry, Reply, manifest_reply, ok, redirect};
use crate::lab::{Cluster, Lab, wait};
use crate::node_pressure::SmallDisk;
use crate::pictures;
use crate::workloads::{IMAGE, with_images};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The kernel's own log, which no container may read, and a disk.
const KMSG: (u32, u32) = (1, 11);
const DISK: (u32, u32) = (254, 0);
const LAYERS: usize = 100;

/// A layer of lines such as `dir a`, `file a/b text`, `link a/l target`, `hard a/h a/b`,
/// `char a 1 3`, `block a 8 0`. Names are written as they are, whatever they say.
fn layer(script: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in script.lines().map(str::trim) {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, name, rest @ ..] = words.as_slice() else {
            continue;
        };
        let mut header = tar::Header::new_gnu();
        let mut data = Vec::new();
        let (entry_type, mode) = match *kind {
            "dir" => (tar::EntryType::Directory, 0o755),
            "file" => {
                data = rest[0].as_bytes().to_vec();
                (tar::EntryType::Regular, 0o644)
            }
            "link" => (tar::EntryType::Symlink, 0o777),
            "hard" => (tar::EntryType::Link, 0o644),
            "char" => (tar::EntryType::Char, 0o666),
            "block" => (tar::EntryType::Block, 0o666),
            other => panic!("{other}"),
        };
        match entry_type {
            tar::EntryType::Symlink | tar::EntryType::Link => {
                let target = rest[0].as_bytes();
                header.as_gnu_mut().unwrap().linkname[..target.len()].copy_from_slice(target);
            }
            tar::EntryType::Char | tar::EntryType::Block => {
                header.set_device_major(rest[0].parse().unwrap()).unwrap();
                header.set_device_minor(rest[1].parse().unwrap()).unwrap();
            }
            _ => {}
        }
        header.set_entry_type(entry_type);
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(data.len() as u64);
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        data.resize(data.len().next_multiple_of(512), 0);
        out.extend_from_slice(&data);
    }
    out.resize(out.len() + 1024, 0);
    out
}

/// A file of as many bytes as said, none of which are there.
fn promised(size_bytes: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_path("bomb").unwrap();
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size_bytes);
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// Many files of nothing but zeros.
fn zeros(count: usize, size_bytes: usize) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let bytes = vec![0; size_bytes];
    for number in 0..count {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(size_bytes as u64);
        let name = format!("zeros{number}");
        builder
            .append_data(&mut header, name, bytes.as_slice())
            .unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .arg("-1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output.stdout
}

fn pod(name: &str, image: &str, script: &str) -> String {
    format!(
        r#"
---
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: {image}
    imagePullPolicy: Always
    command: ["sh", "-c", "{script}"]
"#
    )
}

/// A pod that was there before, and shall not notice.
struct Bystander<'a> {
    cluster: &'a Cluster,
    node: &'a str,
    since: String,
}

const READY: &str = "{.status.conditions[?(@.type==\"Ready\")]";

impl<'a> Bystander<'a> {
    fn start(cluster: &'a Cluster, node: &'a str) -> Self {
        let forever = "trap 'exit 0' TERM; while true; do sleep 1; done";
        cluster.apply(
            &pod("bystander", IMAGE, forever).replace("Policy: Always", "Policy: IfNotPresent"),
        );
        cluster.wait_value(&["pod", "bystander"], "{.status.phase}", "Running");
        let since = cluster.value(&["node", node], &format!("{READY}.lastTransitionTime}}"));
        Self {
            cluster,
            node,
            since,
        }
    }

    /// Neither it nor the node was disturbed.
    fn is_well(&self) {
        let ready = format!("{READY}.status}} {READY}.lastTransitionTime}}");
        let found = self.cluster.value(&["node", self.node], &ready);
        assert_eq!(found, format!("True {}", self.since));
        let path = "{.status.phase} {.status.containerStatuses[0].restartCount}";
        assert_eq!(self.cluster.value(&["pod", "bystander"], path), "Running 0");
        let said = self
            .cluster
            .kubectl(&["exec", "bystander", "--", "echo", "well"]);
        assert_eq!(said, "well\n");
    }
}

/// The pod waits for its image, and says why.
#[track_caller]
fn refused(cluster: &Cluster, name: &str, part: &str) {
    let state = "{.status.phase} {.status.containerStatuses[0].state.waiting.reason} \
                 {.status.containerStatuses[0].state.waiting.message}";
    let expected = format!("a wait for its image with {part:?}");
    cluster.wait_for(&["pod", name], state, &expected, |last| {
        let reasons = ["Pending ErrImagePull ", "Pending ImagePullBackOff "];
        reasons.iter().any(|reason| last.starts_with(reason)) && last.contains(part)
    });
}

#[track_caller]
fn runs(cluster: &Cluster, name: &str) -> String {
    cluster.wait_value(&["pod", name], "{.status.phase}", "Succeeded");
    cluster.kubectl(&["logs", name])
}

/// Nothing half done is left of pulls that failed.
fn nothing_is_left(data_dir: &Path) {
    let work = data_dir.join("agent/images/work");
    wait("what was pulled in part is taken away", || {
        (std::fs::read_dir(&work).unwrap().count() == 0).then_some(())
    });
}

fn changed(registry: &Registry, paths: &Paths, change: impl FnOnce(&mut serde_json::Value)) {
    let mut manifest = registry.manifest(paths);
    change(&mut manifest);
    registry.on(&paths.manifest, manifest_reply(&manifest.to_string()));
}

/// Names of images, and what pods that want them are told.
type Expected = Vec<(&'static str, &'static str)>;

fn wrong_digests(registry: &Registry) -> Expected {
    let bad = |name: &str| registry.serve(name, &[layer(&format!("file a {name}"))]);
    let paths = bad("layer-digest");
    registry.on(&paths.layers[0], ok(layer("file a another")));
    let paths = bad("config-digest");
    registry.on(&paths.config, ok("{}"));
    registry.serve_unpacked("unpacked-digest", &[(layer("file a x"), b"another")]);
    let paths = bad("no-digest");
    changed(registry, &paths, |manifest| {
        manifest["layers"][0]["digest"] = "sha256:../../../etc/passwd".into();
    });
    vec![
        ("layer-digest", "Invalid digest"),
        ("config-digest", "Invalid digest"),
        ("unpacked-digest", "the digest of an unpacked layer"),
        ("no-digest", "is no digest"),
    ]
}

fn wrong_manifests(registry: &Registry) -> Expected {
    let bad = |name: &str| registry.serve(name, &[layer(&format!("file a {name}"))]);
    let paths = bad("no-manifest");
    registry.on(&paths.manifest, manifest_reply("no JSON"));
    let paths = bad("large-manifest");
    registry.on(&paths.manifest, manifest_reply(&" ".repeat(5 << 20)));
    let paths = bad("other-machine");
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [{
        "digest": format!("sha256:{}", "0".repeat(64)), "size": 3,
        "platform": { "os": "plan9", "architecture": "vax" },
    }] });
    registry.on(&paths.manifest, manifest_reply(&index.to_string()));
    let paths = bad("layer-count");
    changed(registry, &paths, |manifest| {
        manifest["layers"] = serde_json::json!([]);
    });
    vec![
        ("no-manifest", "cannot read the manifest"),
        ("large-manifest", "the manifest is too large"),
        ("other-machine", "no match for platform in manifest"),
        ("layer-count", "the layers of the manifest are not those"),
    ]
}

/// Layers that reach for what is in a directory of the host, or have no end.
fn wrong_layers(registry: &Registry, host: &str) -> Expected {
    let up = "../".repeat(16);
    let bad = |name: &str, script: &str| {
        registry.serve(name, &[layer(script)]);
    };
    bad("traversal", &format!("file {up}{host}/escaped x"));
    bad("hard-link", &format!("hard h {up}{host}/secret"));
    bad("absolute-hard-link", &format!("hard h {host}/secret"));
    bad(
        "linked-hard-link",
        &format!("link l {host}\nhard h l/secret"),
    );
    bad("endless-link", "link a b\nlink b a\nfile a/x y");
    bad("nameless-whiteout", "file .wh... x");
    let bomb = promised(1 << 50);
    registry.serve_unpacked("bomb", &[(gzip(&bomb), &bomb)]);
    vec![
        ("traversal", "points outside of the layer"),
        ("hard-link", "points outside of the layer"),
        ("absolute-hard-link", "has no target"),
        ("linked-hard-link", "has no target"),
        ("endless-link", "points outside of the layer"),
        ("nameless-whiteout", "names nothing"),
        ("bomb", "No space left on device"),
    ]
}

/// Images that are odd and harmless, and pods that look into them.
fn odd_images(registry: &Registry, host: &str) -> String {
    let busybox = pictures::busybox_layer();
    let serve = |name: &str, scripts: &[&str]| {
        let own = scripts.iter().map(|script| layer(script));
        let layers: Vec<_> = std::iter::once(busybox.clone()).chain(own).collect();
        registry.serve(name, &layers)
    };
    let up = "../".repeat(16);
    let links = format!("link up {up}..\nlink abs {host}");
    let script = format!("{links}\nfile up/{host}/escaped x\nfile abs/too y");
    serve("contained", &[&script]);
    let (kmsg, disk) = (KMSG, DISK);
    let devices = format!(
        "char kmsg {} {}\nblock disk {} {}\nchar gone 0 0\nchar null 1 3",
        kmsg.0, kmsg.1, disk.0, disk.1
    );
    serve("devices", &[&devices]);
    let many: Vec<_> = (1..LAYERS)
        .map(|number| format!("dir l\nfile l/{number} x"))
        .collect();
    serve("many", &many.iter().map(String::as_str).collect::<Vec<_>>());
    let below = "dir w\ndir w/d\nfile w/d/old x\ndir w/o\nfile w/o/old x\ndir w/k\nfile w/k/a x\n\
                 file w/k/b x\nfile w/gone x\nfile w/file x";
    let hiding = "file w/.wh.gone x\nfile w/k/.wh.a x\nfile w/o/.wh..wh..opq x\nfile w/o/new x\n\
                  file w/.wh.d x\ndir w/d\nfile w/d/new x\nfile .wh..wh.plnk x\n\
                  file w/.wh.never x\nfile w/.wh.file x";
    serve(
        "whiteouts",
        &[below, hiding, "dir w/gone\nfile w/gone/back x"],
    );
    // Sizes whose sum no number holds: what is served is within them.
    let paths = serve("sizes", &["file a ten"]);
    changed(registry, &paths, |manifest| {
        for number in 0..2 {
            manifest["layers"][number]["size"] = u64::MAX.into();
        }
    });
    let contained = format!("cat {host}/escaped {host}/too; ls {host}");
    let devices = "head -c 1 /kmsg 2>&1; head -c 1 /disk 2>&1; echo x > /null && echo none; \
                   ls /gone 2>&1; true";
    let whiteouts = "cd /w; for f in * */*; do echo $f; done; ls -a / | busybox grep -c wh; true";
    let pods = [
        ("contained", contained.as_str()),
        ("devices", devices),
        ("many", "set -- /l/*; echo $#"),
        ("whiteouts", whiteouts),
        ("sizes", "cat /a"),
    ];
    let pods = pods.iter();
    pods.map(|(name, look)| pod(name, &registry.image(name), look))
        .collect()
}

fn odd_images_are_harmless(cluster: &Cluster) {
    assert_eq!(runs(cluster, "contained"), "xyescaped\ntoo\n");
    let said = runs(cluster, "devices");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("Operation not permitted"), "{said}");
    assert!(lines[1].contains("Operation not permitted"), "{said}");
    assert_eq!(lines[2], "none", "{said}");
    assert!(lines[3].contains("No such file"), "{said}");
    assert_eq!(runs(cluster, "many"), format!("{}\n", LAYERS - 1));
    assert_eq!(
        runs(cluster, "whiteouts"),
        "d\ngone\nk\no\nd/new\ngone/back\nk/b\no/new\n0\n"
    );
    assert_eq!(runs(cluster, "sizes"), "ten");
}

#[test]
fn images_that_are_not_what_they_say_or_reach_out_are_refused() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "wary");
    let bystander = Bystander::start(&cluster, "wary");
    let registry = Registry::start(&cluster.host);
    let outside = lab.path("outside");
    std::fs::create_dir(&outside).unwrap();
    let secret = outside.join("secret");
    std::fs::write(&secret, "of the host").unwrap();
    let host = outside.display().to_string();
    let mut expected = wrong_digests(&registry);
    expected.extend(wrong_manifests(&registry));
    expected.extend(wrong_layers(&registry, &host));
    let wrong = expected.iter();
    let wrong: String = wrong
        .map(|(name, _)| pod(name, &registry.image(name), "true"))
        .collect();
    cluster.apply(&(wrong + &odd_images(&registry, &host)));

    for (name, part) in &expected {
        refused(&cluster, name, part);
    }
    odd_images_are_harmless(&cluster);
    cluster.wait_events(&["Failed to pull image"]);
    nothing_is_left(&cluster.host.data_dir);
    let found: Vec<_> = std::fs::read_dir(&outside).unwrap().collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(std::fs::metadata(&secret).unwrap().nlink(), 1);
    bystander.is_well();
}

/// An image of busybox and a file with its name.
fn named(registry: &Registry, name: &str) -> Paths {
    let own = layer(&format!("file a {name}"));
    registry.serve(name, &[pictures::busybox_layer(), own])
}

fn challenge(registry: &Registry, realm: &str) -> Reply {
    let head = format!(
        "401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"http://{}/{realm}\"\r\n",
        registry.address
    );
    Reply::Plain(head, Vec::new())
}

fn lies(registry: &Registry) -> Expected {
    let body = layer("file a shorter");
    let paths = registry.serve("shorter", std::slice::from_ref(&body));
    registry.on(&paths.layers[0], Reply::Claim(2 * body.len(), body.clone()));
    let body = layer("file a longer");
    let paths = registry.serve("longer", std::slice::from_ref(&body));
    registry.on(&paths.layers[0], ok([body, vec![0; 4096]].concat()));
    let paths = named(registry, "circles");
    let itself = format!("http://{}{}", registry.address, paths.layers[1]);
    registry.on(&paths.layers[1], redirect(&itself));
    let paths = named(registry, "to-a-file");
    registry.on(&paths.layers[1], redirect("file:///etc/passwd"));
    let paths = named(registry, "locked");
    registry.on(&paths.manifest, challenge(registry, "no-token"));
    vec![
        ("shorter", "cannot read the layer"),
        ("longer", "cannot read the layer: more than "),
        ("circles", "redirect"),
        ("to-a-file", "failed to pull and unpack image"),
        ("locked", "failed to pull and unpack image"),
    ]
}

#[test]
fn registries_that_hang_or_lie_or_send_elsewhere_are_told_of() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "patient");
    let bystander = Bystander::start(&cluster, "patient");
    let registry = Registry::start(&cluster.host);
    let expected = lies(&registry);
    registry.on("/v2/", challenge(&registry, "token"));
    registry.on("/token", ok(r#"{"token":"given"}"#));
    let paths = named(&registry, "hangs");
    registry.on(&paths.manifest, Reply::Stuck(Vec::new()));
    // Goes silent in the middle of a layer; the pod is deleted meanwhile.
    let paths = named(&registry, "stalls");
    registry.on(&paths.layers[1], Reply::Stuck(vec![0; 512]));

    let elsewhere = Registry::start(&cluster.host);
    let paths = named(&registry, "moved");
    elsewhere.on("/blob", ok(layer("file a moved")));
    registry.on(
        &paths.layers[1],
        redirect(&format!("http://{}/blob", elsewhere.address)),
    );
    let paths = named(&registry, "token");
    for path in [
        &paths.manifest,
        &paths.config,
        &paths.layers[0],
        &paths.layers[1],
    ] {
        registry.guard(path, "Bearer given", challenge(&registry, "token"));
    }

    let names = expected.iter().map(|(name, _)| *name);
    let names = names.chain(["hangs", "stalls", "moved", "token"]);
    let manifests: String = names
        .map(|name| pod(name, &registry.image(name), "cat /a"))
        .collect();
    cluster.apply(&manifests);
    assert_eq!(runs(&cluster, "moved"), "moved");
    assert_eq!(runs(&cluster, "token"), "token");
    for (name, part) in &expected {
        refused(&cluster, name, part);
    }
    let state = "{.status.containerStatuses[0].state.waiting.reason}";
    cluster.wait_value(&["pod", "stalls"], state, "ContainerCreating");
    cluster.kubectl(&["delete", "pod", "stalls", "--timeout=60s"]);
    // A minute of silence is enough.
    refused(&cluster, "hangs", "timed out");
    bystander.is_well();
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_pull_is_told_and_has_room_again() {
    let mut disk = SmallDisk::default();
    let mut lab = Lab::new();
    disk.mount(lab.path("brim"), "256m");
    let settings = ["--eviction-hard=memory.available<10Mi"];
    let cluster = lab.cluster("brim", &settings);
    cluster.import(&pictures::busybox(&lab.path(""), IMAGE));
    let bystander = Bystander::start(&cluster, "brim");
    let registry = Registry::start(&cluster.host);
    let busybox = pictures::busybox_layer();
    // Many files, none of which is much, and one that is: little is sent, much comes out.
    for (name, bomb) in [
        ("many-files", zeros(600, 1 << 19)),
        ("one-file", zeros(1, 300 << 20)),
    ] {
        let layers = [(busybox.clone(), busybox.as_slice()), (gzip(&bomb), &bomb)];
        registry.serve_unpacked(name, &layers);
        cluster.apply(&pod(name, &registry.image(name), "true"));
        refused(&cluster, name, "No space left on device");
        cluster.kubectl(&["delete", "pod", name]);
        nothing_is_left(&cluster.host.data_dir);
    }
    // The server is on that disk too: it had room all the time.
    let log = lab.process(cluster.process).log_text();
    assert!(!log.contains("panicked"), "{log}");
    registry.serve("small", &[busybox.clone(), layer("file a fits")]);
    cluster.apply(&pod("small", &registry.image("small"), "cat /a"));
    assert_eq!(runs(&cluster, "small"), "fits");
    bystander.is_well();
}
