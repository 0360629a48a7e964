//! A runtime with a data directory and control groups of its own, and an image of busybox.

use coracle_agent::runtime::embedded::{Config, EmbeddedRuntime};
use coracle_agent::runtime::{
    ContainerConfig, ContainerId, ContainerState, ContainerStatus, Runtime, SandboxConfig,
    SandboxId,
};
use futures::FutureExt;
use std::fs;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

const BUSYBOX: &str = "/bin/busybox";
pub const IMAGE: &str = "test/busybox:1";
/// A start takes some 50 ms; a loaded machine takes its time.
const DEADLINE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone)]
pub struct Host {
    pub directory: Rc<tempfile::TempDir>,
    pub runtime: EmbeddedRuntime,
}

/// Runs a test on a host of its own and takes everything away after it, also when it fails.
pub fn on_host<F: Future<Output = ()>>(test: impl FnOnce(Host) -> F) {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: containers need root");
        return;
    }
    assert!(
        Path::new(BUSYBOX).exists(),
        "{BUSYBOX} is missing: install busybox-static"
    );
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    executor.block_on(async {
        let directory = Rc::new(tempfile::tempdir().unwrap());
        let runtime = EmbeddedRuntime::open(config(directory.path())).unwrap();
        let archive = directory.path().join("busybox.tar");
        fs::write(&archive, busybox_archive()).unwrap();
        runtime.images().import(&archive).unwrap();
        let host = Host {
            directory: directory.clone(),
            runtime,
        };
        let outcome = AssertUnwindSafe(test(host)).catch_unwind().await;
        let runtime = reopen(directory.path()).await;
        runtime.wipe().await.unwrap();
        let group = runtime.cgroup_root().trim_start_matches('/').to_owned();
        for hierarchy in fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
            assert!(
                !hierarchy.path().join(&group).exists(),
                "{hierarchy:?} still has {group}"
            );
        }
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

fn config(directory: &Path) -> Config {
    // target/debug/deps/containers-.. and target/debug/examples/shim
    let here = std::env::current_exe().unwrap();
    let shim = here
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples/shim");
    assert!(
        shim.exists(),
        "{} is missing: build the examples too",
        shim.display()
    );
    Config {
        shim: vec![shim.into()],
        ..Config::new(&directory.join("agent"))
    }
}

/// The old runtime lets go of its lock when its last task has ended.
pub async fn reopen(directory: &Path) -> EmbeddedRuntime {
    let mut opened = EmbeddedRuntime::open(config(directory));
    let give_up = tokio::time::Instant::now() + DEADLINE;
    while opened.is_err() && tokio::time::Instant::now() < give_up {
        tokio::time::sleep(PAUSE).await;
        opened = EmbeddedRuntime::open(config(directory));
    }
    opened.unwrap()
}

pub async fn until<T>(what: &str, mut predicate: impl AsyncFnMut() -> Option<T>) -> T {
    let give_up = tokio::time::Instant::now() + DEADLINE;
    loop {
        if let Some(found) = predicate().await {
            return found;
        }
        assert!(
            tokio::time::Instant::now() < give_up,
            "gave up waiting for {what}"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

impl Host {
    pub async fn sandbox(&self) -> SandboxId {
        self.sandbox_with(|_| ()).await
    }

    pub async fn sandbox_with(&self, change: impl FnOnce(&mut SandboxConfig)) -> SandboxId {
        let uid = hex::encode(rand::random::<[u8; 4]>());
        let mut config = SandboxConfig {
            pod_name: "web".into(),
            pod_uid: uid.clone(),
            hostname: "web".into(),
            cgroup: format!("pod{uid}"),
            ..SandboxConfig::default()
        };
        change(&mut config);
        self.runtime.run_sandbox(config).await.unwrap()
    }

    /// A container that runs a line of shell.
    pub fn shell(&self, line: &str) -> ContainerConfig {
        ContainerConfig {
            name: "main".into(),
            image: IMAGE.into(),
            command: vec!["/bin/sh".into(), "-c".into(), line.into()],
            log_path: self.log_path(),
            ..ContainerConfig::default()
        }
    }

    fn log_path(&self) -> PathBuf {
        let name = hex::encode(rand::random::<[u8; 4]>());
        self.directory.path().join(format!("{name}.log"))
    }

    pub async fn start(&self, config: ContainerConfig) -> ContainerId {
        let sandbox = self.sandbox().await;
        self.start_in(&sandbox, config).await
    }

    pub async fn start_in(&self, sandbox: &SandboxId, config: ContainerConfig) -> ContainerId {
        let id = self
            .runtime
            .create_container(sandbox, config)
            .await
            .unwrap();
        self.runtime.start_container(&id).await.unwrap();
        id
    }

    /// Of the container's first process, on the host.
    pub async fn pid(&self, id: &ContainerId) -> i32 {
        let status = self.runtime.container_status(id).await;
        status.unwrap().pid.unwrap()
    }

    pub async fn exited(&self, id: &ContainerId) -> ContainerStatus {
        until("the container's end", async || {
            let status = self.runtime.container_status(id).await.unwrap();
            (status.state == ContainerState::Exited).then_some(status)
        })
        .await
    }

    /// Runs to the end; answers with the status and the log's texts.
    pub async fn run(&self, config: ContainerConfig) -> (ContainerStatus, String) {
        let id = self.start(config.clone()).await;
        let status = self.exited(&id).await;
        (status, texts(&config.log_path))
    }
}

/// What the log says without its times and tags: `stdout: text`.
pub fn texts(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap();
    let lines = log.lines().map(|line| {
        let mut fields = line.splitn(4, ' ');
        let time = fields.next().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line}");
        let (stream, tag) = (fields.next().unwrap(), fields.next().unwrap());
        assert_eq!(tag, "F");
        format!("{stream}: {}", fields.next().unwrap())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A docker archive with busybox, a user and a group in it.
fn busybox_archive() -> Vec<u8> {
    archive(IMAGE, &[busybox_layer()])
}

/// busybox below many layers of one file each: `/layer1`, `/layer2`, ...
pub fn deep_archive(layers_count: usize) -> Vec<u8> {
    let small = (1..layers_count).map(|number| {
        let mut layer = tar::Builder::new(Vec::new());
        let name = format!("layer{number}");
        add(&mut layer, &name, format!("{name}\n").as_bytes(), 0o644);
        layer.into_inner().unwrap()
    });
    let layers: Vec<Vec<u8>> = std::iter::once(busybox_layer()).chain(small).collect();
    archive("test/deep:1", &layers)
}

fn busybox_layer() -> Vec<u8> {
    let mut layer = tar::Builder::new(Vec::new());
    let busybox = fs::read(BUSYBOX).unwrap();
    add(&mut layer, "bin/busybox", &busybox, 0o755);
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    for applet in [
        "sh", "cat", "sleep", "id", "env", "echo", "tail", "stty", "tty", "kill", "mkdir", "true",
        "grep", "tr", "ls", "wc",
    ] {
        layer
            .append_link(&mut link.clone(), format!("bin/{applet}"), "busybox")
            .unwrap();
    }
    let passwd = b"root:x:0:0::/root:/bin/sh\napp:x:1000:1001::/app:/bin/sh\n";
    add(&mut layer, "etc/passwd", passwd, 0o644);
    add(
        &mut layer,
        "etc/group",
        b"root:x:0:\nextra:x:50:app\n",
        0o644,
    );
    layer.into_inner().unwrap()
}

fn archive(name: &str, layers: &[Vec<u8>]) -> Vec<u8> {
    let diff_ids: Vec<String> = layers
        .iter()
        .map(|layer| coracle_agent::images::digest::of(layer))
        .collect();
    let config = serde_json::json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Env": ["PATH=/bin", "FROM=image"], "Cmd": ["echo", "from the image"] },
        "rootfs": { "type": "layers", "diff_ids": diff_ids },
    });
    let mut archive = tar::Builder::new(Vec::new());
    let mut names = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        names.push(format!("{number}/layer.tar"));
        add(&mut archive, &names[number], layer, 0o644);
    }
    let manifest =
        serde_json::json!([{ "Config": "config.json", "RepoTags": [name], "Layers": names }]);
    add(
        &mut archive,
        "config.json",
        config.to_string().as_bytes(),
        0o644,
    );
    add(
        &mut archive,
        "manifest.json",
        manifest.to_string().as_bytes(),
        0o644,
    );
    archive.into_inner().unwrap()
}

fn add(archive: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8], mode: u32) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    archive.append_data(&mut header, name, bytes).unwrap();
}
