//! An image pulled from a real registry (Debian's docker-registry) on the lab's network.

use crate::lab::{Host, Lab, all_text, run, wait};
use crate::pictures;
use std::io::Write;
use std::process::{Child, Command, Stdio};

struct Registry {
    child: Child,
    address: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A registry on the host's loopback; its port is free because the namespace is new.
fn registry(lab: &Lab, host: &Host) -> Registry {
    let directory = lab.path("registry");
    let config = lab.path("registry.yml");
    let text = format!(
        "version: 0.1\nstorage: {{ filesystem: {{ rootdirectory: {} }} }}\nhttp: {{ addr: 127.0.0.1:5000 }}\n",
        directory.display()
    );
    std::fs::write(&config, text).unwrap();
    let child = host
        .command("docker-registry")
        .arg("serve")
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("docker-registry: run tests with tests/run");
    let registry = Registry {
        child,
        address: "127.0.0.1:5000".to_owned(),
    };
    wait("the registry answers", || {
        curl(host, &["-sf", "http://127.0.0.1:5000/v2/"])
            .status
            .success()
            .then_some(())
    });
    registry
}

fn curl(host: &Host, arguments: &[&str]) -> std::process::Output {
    host.command("curl").args(arguments).output().unwrap()
}

fn push_blob(host: &Host, name: &str, file: &std::path::Path, digest: &str) {
    let begun = curl(
        host,
        &[
            "-sf",
            "-D",
            "-",
            "-X",
            "POST",
            &format!("http://127.0.0.1:5000/v2/{name}/blobs/uploads/"),
        ],
    );
    let text = all_text(&begun);
    let location = text
        .lines()
        .find_map(|line| line.strip_prefix("Location: "))
        .unwrap_or_else(|| panic!("no upload location: {text}"))
        .trim();
    let put = curl(
        host,
        &[
            "-sf",
            "-X",
            "PUT",
            "-H",
            "Content-Type: application/octet-stream",
            "--data-binary",
            &format!("@{}", file.display()),
            &format!("{location}&digest=sha256:{digest}"),
        ],
    );
    assert!(put.status.success(), "{}", all_text(&put));
}

fn push_manifest(host: &Host, url: &str, media_type: &str, file: &std::path::Path) {
    let header = format!("Content-Type: {media_type}");
    let data = format!("@{}", file.display());
    let put = curl(
        host,
        &[
            "-sf",
            "-X",
            "PUT",
            "-H",
            &header,
            "--data-binary",
            &data,
            url,
        ],
    );
    assert!(put.status.success(), "{url}: {}", all_text(&put));
}

/// Pushes busybox as a manifest list with one platform and a layer compressed by `program`.
fn push(lab: &Lab, host: &Host, name: &str, program: &str, suffix: &str) {
    let layer = pictures::busybox_layer();
    let compressed = lab.path(&format!("{name}-layer"));
    let mut child = Command::new(program)
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(std::fs::File::create(&compressed).unwrap())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&layer).unwrap();
    assert!(child.wait().unwrap().success());
    let bytes = std::fs::read(&compressed).unwrap();
    let layer_digest = pictures::sha256(&bytes);
    push_blob(host, name, &compressed, &layer_digest);
    let config = serde_json::json!({
        "architecture": pictures::architecture(), "os": "linux",
        "config": { "Env": ["PATH=/bin"], "Cmd": ["sh", "-c", "echo pulled; sleep 1000"] },
        "rootfs": { "type": "layers",
            "diff_ids": [format!("sha256:{}", pictures::sha256(&layer))] },
    });
    let write = |file: &str, value: &serde_json::Value| {
        let path = lab.path(&format!("{name}-{file}"));
        std::fs::write(&path, serde_json::to_vec(value).unwrap()).unwrap();
        path
    };
    let config_file = write("config", &config);
    let config_bytes = std::fs::read(&config_file).unwrap();
    let config_digest = pictures::sha256(&config_bytes);
    push_blob(host, name, &config_file, &config_digest);
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest_file = write(
        "manifest",
        &serde_json::json!({
            "schemaVersion": 2, "mediaType": manifest_type,
            "config": { "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": format!("sha256:{config_digest}"), "size": config_bytes.len() },
            "layers": [{ "mediaType": format!("application/vnd.oci.image.layer.v1.tar+{suffix}"),
                "digest": format!("sha256:{layer_digest}"), "size": bytes.len() }],
        }),
    );
    let manifest_bytes = std::fs::read(&manifest_file).unwrap();
    let digest = format!("sha256:{}", pictures::sha256(&manifest_bytes));
    let url = format!("http://127.0.0.1:5000/v2/{name}/manifests/");
    push_manifest(
        host,
        &format!("{url}{digest}"),
        manifest_type,
        &manifest_file,
    );
    let index_type = "application/vnd.oci.image.index.v1+json";
    let index_file = write(
        "index",
        &serde_json::json!({
            "schemaVersion": 2, "mediaType": index_type,
            "manifests": [{ "mediaType": manifest_type, "digest": digest,
                "size": manifest_bytes.len(),
                "platform": { "architecture": pictures::architecture(), "os": "linux" } }],
        }),
    );
    push_manifest(host, &format!("{url}1"), index_type, &index_file);
}

#[test]
fn pods_run_from_a_registry() {
    let mut lab = Lab::new();
    let cluster = lab.cluster("pull", &[]);
    let registry = registry(&lab, &cluster.host);
    push(&lab, &cluster.host, "gzipped", "gzip", "gzip");
    push(&lab, &cluster.host, "zstandard", "zstd", "zstd");
    for name in ["gzipped", "zstandard"] {
        let image = format!("--image={}/{name}:1", registry.address);
        cluster.kubectl(&["run", name, &image]);
        cluster.wait_value(&["pod", name], "{.status.phase}", "Running");
        wait("it logs", || {
            (cluster.kubectl(&["logs", name]) == "pulled\n").then_some(())
        });
    }
    cluster.wait_events(&["Successfully pulled image"]);
    let image_id = cluster.value(
        &["pod", "gzipped"],
        "{.status.containerStatuses[0].imageID}",
    );
    assert!(image_id.contains("sha256:"), "{image_id}");

    let data_dir = cluster.host.data_dir.display().to_string();
    let listed = run(
        crate::lab::coracle(),
        &["image", "list", "--data-dir", &data_dir],
    );
    assert!(listed.contains("127.0.0.1:5000/gzipped:1"), "{listed}");
    let pulled = cluster
        .host
        .command(crate::lab::coracle())
        .args([
            "image",
            "pull",
            "--data-dir",
            &data_dir,
            "127.0.0.1:5000/zstandard:1",
        ])
        .output()
        .unwrap();
    assert!(pulled.status.success(), "{}", all_text(&pulled));
}
