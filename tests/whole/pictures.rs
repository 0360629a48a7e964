//! Image archives made from this machine's static busybox.

use std::path::{Path, PathBuf};

const APPLETS: [&str; 28] = [
    "sh", "echo", "sleep", "cat", "ls", "id", "env", "hostname", "wget", "nc", "httpd", "true",
    "false", "kill", "ps", "ip", "touch", "dd", "seq", "date", "tty", "stty", "test", "head",
    "tar", "stat", "chmod", "nslookup",
];

/// A Docker archive at `directory` whose image is called `reference`.
pub fn busybox(directory: &Path, reference: &str) -> PathBuf {
    busybox_with(directory, reference, &["sh"])
}

/// The same with another command.
pub fn busybox_with(directory: &Path, reference: &str, command: &[&str]) -> PathBuf {
    let layer = busybox_layer();
    let digest = sha256(&layer);
    let config = serde_json::json!({
        "architecture": architecture(),
        "os": "linux",
        "config": { "Env": ["PATH=/bin"], "Cmd": command },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
    });
    let manifest = serde_json::json!([{
        "Config": "config.json",
        "RepoTags": [reference],
        "Layers": ["layer.tar"],
    }]);
    let path = directory.join(format!("{}.tar", reference.replace(['/', ':'], "-")));
    let mut archive = tar::Builder::new(std::fs::File::create(&path).unwrap());
    append(
        &mut archive,
        "config.json",
        &serde_json::to_vec(&config).unwrap(),
        0o644,
    );
    append(&mut archive, "layer.tar", &layer, 0o644);
    append(
        &mut archive,
        "manifest.json",
        &serde_json::to_vec(&manifest).unwrap(),
        0o644,
    );
    archive.finish().unwrap();
    path
}

pub fn busybox_layer() -> Vec<u8> {
    let program = std::fs::read("/bin/busybox").expect("busybox-static: run tests with tests/run");
    let mut layer = tar::Builder::new(Vec::new());
    for directory in ["bin", "tmp", "etc", "root"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(if directory == "tmp" { 0o1777 } else { 0o755 });
        header.set_size(0);
        layer
            .append_data(&mut header, directory, std::io::empty())
            .unwrap();
    }
    append(&mut layer, "bin/busybox", &program, 0o755);
    append(
        &mut layer,
        "etc/passwd",
        b"root:x:0:0::/root:/bin/sh\nweb:x:1234:5678::/:/bin/sh\n",
        0o644,
    );
    append(&mut layer, "etc/group", b"root:x:0:\nweb:x:5678:\n", 0o644);
    for applet in APPLETS {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        layer
            .append_link(&mut header, format!("bin/{applet}"), "busybox")
            .unwrap();
    }
    layer.into_inner().unwrap()
}

fn append<W: std::io::Write>(archive: &mut tar::Builder<W>, path: &str, bytes: &[u8], mode: u32) {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path, bytes).unwrap();
}

pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}

pub fn architecture() -> &'static str {
    if cfg!(target_arch = "x86_64") {
        "amd64"
    } else {
        "arm64"
    }
}
