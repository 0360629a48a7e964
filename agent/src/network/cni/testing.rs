//! Plugins that are shell scripts, and a node's directories for them.

use super::{Cni, Resolvers, Settings};
use crate::runtime::{SandboxConfig, SandboxId, SandboxState, SandboxStatus};
use jiff::Timestamp;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than any plugin of a test takes that is not to be killed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Of most plugins here.
pub const RESULT: &str = r#"{"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/16"}]}"#;

/// A configuration of the network `lab`.
pub fn list(version: &str, plugins: &str) -> String {
    format!(r#"{{"cniVersion": "{version}", "name": "lab", "plugins": [{plugins}]}}"#)
}

pub struct Node(TempDir);

impl Node {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["bin", "net.d"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self(directory)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A program `name` that does what the shell says; `$here` is the node's directory.
    pub fn script(&self, name: &str, body: &str) {
        let here = self.0.path().display();
        script(&self.path("bin"), name, &format!("here={here}\n{body}"));
    }

    /// A plugin that writes down what it is asked, and gives this result. What it was told is
    /// there whole or not at all, and after the line in the log.
    pub fn plugin(&self, name: &str, result: &str) {
        let body = format!(
            "input=$(cat)\n\
             echo \"{name} $CNI_COMMAND $CNI_CONTAINERID [$CNI_NETNS] $CNI_IFNAME\" >> $here/log\n\
             echo \"$input\" > $here/.told-$$\n\
             mv $here/.told-$$ $here/{name}-$CNI_COMMAND\n\
             if [ -e $here/{name}-$CNI_COMMAND-fails ]; then\n\
               echo '{{\"code\": 11, \"msg\": \"not now\", \"details\": \"later\"}}'; exit 1\n\
             fi\n\
             if [ $CNI_COMMAND = ADD ]; then echo '{result}'; fi"
        );
        self.script(name, &body);
    }

    pub fn fails(&self, plugin: &str, command: &str, does: bool) {
        let path = self.path(&format!("{plugin}-{command}-fails"));
        match does {
            true => fs::write(path, "").unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }

    pub fn configure(&self, file: &str, text: &str) {
        fs::write(self.path("net.d").join(file), text).unwrap();
    }

    pub fn unconfigure(&self, file: &str) {
        fs::remove_file(self.path("net.d").join(file)).unwrap();
    }

    /// What was asked of plugins since the last call.
    pub fn log(&self) -> String {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        drop(fs::remove_file(self.path("log")));
        text
    }

    /// What a plugin was told when it was asked last.
    pub fn told(&self, plugin: &str, command: &str) -> serde_json::Value {
        let text = fs::read(self.path(&format!("{plugin}-{command}"))).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    pub fn settings(&self, time_max: Duration) -> Settings {
        Settings {
            configurations: self.path("net.d"),
            plugins: vec![self.path("none"), self.path("bin")],
            time_max,
        }
    }

    /// An agent that begins, or begins again.
    pub fn cni(&self, time_max: Duration) -> Cni {
        Cni::open(self.settings(time_max), self.path("network.cni"))
    }
}

pub fn script(directory: &Path, name: &str, body: &str) {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// `spawn` returns in the midst of `exec`, a moment before the kernel shows what a program was
/// started with.
pub async fn begun(child: &Child) {
    let environment = format!("/proc/{}/environ", child.id());
    let is_shown = || fs::read(&environment).is_ok_and(|text| !text.is_empty());
    wait("it shows its environment", is_shown).await;
}

/// In the namespace of the test itself, which no plugin here enters.
pub fn sandbox(id: &str) -> SandboxStatus {
    let config = SandboxConfig {
        pod_name: "web".into(),
        pod_namespace: "shop".into(),
        pod_uid: "u1".into(),
        ..SandboxConfig::default()
    };
    SandboxStatus {
        id: SandboxId(id.into()),
        config,
        state: SandboxState::Ready,
        created_at: Timestamp::UNIX_EPOCH,
        network_namespace: Some("/proc/self/ns/net".into()),
        addresses: Default::default(),
    }
}

/// Attaches, and shows addresses or the error.
pub async fn attach(cni: &Cni, id: &str) -> String {
    match cni.attach(&sandbox(id), &Resolvers::default()).await {
        Ok(Some(addresses)) => format!("{addresses:?}"),
        Ok(None) => "no network of plugins".into(),
        Err(error) => crate::error::chain(&error),
    }
}

pub async fn detach(cni: &Cni, id: &str) -> String {
    match cni.detach(&SandboxId(id.into())).await {
        Ok(was_attached) => was_attached.to_string(),
        Err(error) => crate::error::chain(&error),
    }
}

/// Until it holds.
pub async fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "waited for this to hold: {what}");
}
