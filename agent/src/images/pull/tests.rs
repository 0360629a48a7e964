//! Against Debian's docker-registry, a real one.
#![allow(clippy::print_stderr)] // A skipped test says why.

mod hostile;

use super::registry::{MANIFEST_TYPES, speaks_plain};
use super::*;
use crate::images::archive::tests::{Sample, gzip};
use crate::images::manifest::Platform;
use oci_client::RegistryOperation;
use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const REGISTRY: &str = "/usr/bin/docker-registry";
/// user:secret, by bcrypt.
const HTPASSWD: &str = "user:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";
const DEADLINE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

struct Server {
    directory: tempfile::TempDir,
    address: String,
    process: Child,
    store: ImageStore,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A registry on a free port, with or without a password, and an empty store.
async fn server(with_password: bool) -> Option<Server> {
    if !Path::new(REGISTRY).exists() {
        eprintln!("skipped: {REGISTRY} is missing: install docker-registry");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let address = format!("127.0.0.1:{port}");
    let path = |name: &str| directory.path().join(name);
    let mut config = format!(
        "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\n",
        path("registry").display()
    );
    if with_password {
        fs::write(path("htpasswd"), HTPASSWD).unwrap();
        config += &format!(
            "auth:\n  htpasswd:\n    realm: test\n    path: {}\n",
            path("htpasswd").display()
        );
    }
    fs::write(path("config.yml"), config).unwrap();
    let process = Command::new(REGISTRY)
        .arg("serve")
        .arg(path("config.yml"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let store = ImageStore::open(&path("images")).unwrap();
    let server = Server {
        directory,
        address,
        process,
        store,
    };
    let give_up = tokio::time::Instant::now() + DEADLINE;
    while tokio::net::TcpStream::connect(&server.address)
        .await
        .is_err()
    {
        assert!(
            tokio::time::Instant::now() < give_up,
            "the registry does not answer"
        );
        tokio::time::sleep(PAUSE).await;
    }
    Some(server)
}

impl Server {
    fn name(&self, image: &str) -> String {
        format!("{}/{image}", self.address)
    }

    /// Pushes an image of one gzipped and one zstd layer below a list for two platforms.
    async fn push(&self, image: &str, auth: &RegistryAuth) -> String {
        let sample = Sample::new(image, &["a", "b"]);
        let reference = Reference::parse(&self.name(image)).unwrap();
        let remote = Registry::new(&self.store, &reference, auth.clone());
        let (client, remote) = (&remote.client, &remote.remote);
        client
            .auth(remote, auth, RegistryOperation::Push)
            .await
            .unwrap();
        let layers = [
            gzip(&sample.layers[0]),
            zstd::encode_all(sample.layers[1].as_slice(), 1).unwrap(),
        ];
        let mut described = Vec::new();
        for (blob, kind) in layers.iter().chain([&sample.config]).zip([
            "application/vnd.oci.image.layer.v1.tar+gzip",
            "application/vnd.oci.image.layer.v1.tar+zstd",
            "application/vnd.oci.image.config.v1+json",
        ]) {
            let digest = digest::of(blob);
            client
                .push_blob(remote, blob.clone(), &digest)
                .await
                .unwrap();
            described.push(serde_json::json!({
                "mediaType": kind, "digest": digest, "size": blob.len(),
            }));
        }
        let manifest = serde_json::json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPES[1],
            "config": described[2], "layers": described[..2],
        })
        .to_string();
        let digest = digest::of(manifest.as_bytes());
        let by_digest = remote.clone_with_digest(digest.clone());
        let kind = |kind: &str| kind.parse().unwrap();
        client
            .push_manifest_raw(&by_digest, manifest.clone(), kind(MANIFEST_TYPES[1]))
            .await
            .unwrap();
        let entry = |architecture: &str| {
            serde_json::json!({
                "mediaType": MANIFEST_TYPES[1], "digest": digest, "size": manifest.len(),
                "platform": { "os": "linux", "architecture": architecture },
            })
        };
        let index = serde_json::json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPES[0],
            "manifests": [entry("vax"), entry(&Platform::host().architecture)],
        })
        .to_string();
        let pushed = client.push_manifest_raw(remote, index.clone(), kind(MANIFEST_TYPES[0]));
        pushed.await.unwrap();
        digest::of(index.as_bytes())
    }

    async fn refused(&self, image: &str, credentials: &[RegistryCredentials]) -> String {
        self.store
            .pull(&self.name(image), credentials)
            .await
            .unwrap_err()
            .to_string()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_pulled_by_tag_and_by_digest() {
    let Some(server) = server(false).await else {
        return;
    };
    let digest = server.push("team/app:1", &RegistryAuth::Anonymous).await;
    let name = server.name("team/app:1");
    let (first, second) =
        tokio::join!(server.store.pull(&name, &[]), server.store.pull(&name, &[]));
    let image = first.unwrap();
    assert_eq!(image, second.unwrap());
    assert_eq!(image.names, [name.as_str()]);
    assert_eq!(
        image.digests,
        [format!("{}@{digest}", server.name("team/app"))]
    );
    assert!(!image.imported && image.user == "7");
    let held = server
        .store
        .hold(&[&image.digests[0]], "c")
        .unwrap()
        .remove(0);
    assert_eq!(fs::read_to_string(held.layers[0].join("b")).unwrap(), "b");
    assert_eq!(fs::read_to_string(held.layers[1].join("a")).unwrap(), "a");
    let again = server.store.pull(&image.digests[0], &[]).await.unwrap();
    assert_eq!(again.id, image.id);
    assert!(server.store.pulls.lock().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_not_found() {
    let Some(server) = server(false).await else {
        return;
    };
    let text = server.refused("team/none:1", &[]).await;
    let name = server.name("team/none:1");
    assert_eq!(
        text,
        format!(
            "failed to pull and unpack image \"{name}\": failed to resolve reference \"{name}\": \
             {name}: not found"
        )
    );
    let error = server.store.pull("Not/A/Name", &[]).await.unwrap_err();
    assert!(matches!(error, ImageError::Reference(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_secret_opens_a_private_registry() {
    let Some(server) = server(true).await else {
        return;
    };
    let auth = RegistryAuth::Basic("user".into(), "secret".into());
    server.push("app:1", &auth).await;
    let entry = |registry: &str, password: &str| RegistryCredentials {
        registry: registry.to_owned(),
        username: "user".into(),
        password: password.to_owned(),
    };
    let text = server.refused("app:1", &[]).await;
    assert!(text.contains("pull access denied"), "{text}");
    let text = server
        .refused("app:1", &[entry(&server.address, "wrong")])
        .await;
    assert!(text.contains("pull access denied"), "{text}");
    // The second entry is tried when the first one is refused.
    let secrets = [
        entry(&server.name("app"), "wrong"),
        entry(&server.address, "secret"),
    ];
    server
        .store
        .pull(&server.name("app:1"), &secrets)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_layer_is_refused_and_leaves_nothing() {
    let Some(server) = server(false).await else {
        return;
    };
    server.push("app:1", &RegistryAuth::Anonymous).await;
    let layer = digest::of(&gzip(&Sample::new("x", &["a", "b"]).layers[0]));
    let digits = digest::digits(&layer);
    let blobs = "registry/docker/registry/v2/blobs/sha256";
    let path = server
        .directory
        .path()
        .join(blobs)
        .join(&digits[..2])
        .join(digits)
        .join("data");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4] ^= 1; // The time in gzip's header: what is unpacked is the same, the digest is not.
    fs::write(&path, bytes).unwrap();
    let text = server.refused("app:1", &[]).await;
    assert!(text.contains("Invalid digest"), "{text}");
    for part in ["work", "layers"] {
        let left = fs::read_dir(server.directory.path().join("images").join(part)).unwrap();
        assert_eq!(left.count(), 0, "{part}");
    }
}

#[test]
fn plain_http_is_for_this_machine_and_for_those_listed() {
    let listed = ["registry.lan:5000".to_owned(), "10.0.0.1".to_owned()];
    for domain in ["localhost", "localhost:5000", "127.0.0.1:1", "[::1]:5000"] {
        assert!(speaks_plain(domain, &[]), "{domain}");
    }
    assert!(speaks_plain("registry.lan:5000", &listed) && speaks_plain("10.0.0.1:5000", &listed));
    assert!(!speaks_plain("registry.lan", &listed) && !speaks_plain("docker.io", &[]));
}
