use super::end;
use crate::network::cni::testing::begun;
use crate::runtime::SandboxId;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

/// What an agent that was killed left: in a group of its own.
fn plugin(sandbox: &str, directory: &str) -> Child {
    let mut command = Command::new("sleep");
    command
        .arg("1000")
        .env("CNI_CONTAINERID", sandbox)
        .env("CNI_PATH", directory)
        .process_group(0);
    command.spawn().unwrap()
}

#[tokio::test]
async fn plugins_of_the_sandbox_are_ended_and_others_are_not() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path().display().to_string();
    let (mut one, mut two) = (plugin("s1", &here), plugin("s1", &here));
    let mut others = [
        plugin("s2", &here),
        plugin("s10", &here),
        plugin("s1", "/elsewhere"),
    ];
    for child in [&one, &two].into_iter().chain(&others) {
        begun(child).await;
    }
    let (sandbox, directories) = (SandboxId("s1".into()), [PathBuf::from(&here)]);
    // Whoever started them waits for them.
    let waiting = std::thread::spawn(move || [one.wait().unwrap(), two.wait().unwrap()]);
    end(&sandbox, &directories).await.unwrap();
    for status in waiting.join().unwrap() {
        assert!(!status.success());
    }
    for other in &mut others {
        assert!(other.try_wait().unwrap().is_none(), "it runs");
        other.kill().unwrap();
        other.wait().unwrap();
    }
    end(&sandbox, &directories).await.unwrap();
}
