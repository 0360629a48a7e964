//! Clients attached to running containers.

use crate::support::{Host, on_host, until};
use coracle_agent::runtime::{
    AttachConfig, ContainerConfig, ContainerId, ContainerState, ExecStreams, Runtime, TerminalSize,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ALL: AttachConfig = AttachConfig {
    tty: false,
    stdin: true,
    stdout: true,
    stderr: true,
};

async fn attach(host: &Host, id: &ContainerId, config: AttachConfig) -> ExecStreams {
    host.runtime.attach(id, config).await.unwrap()
}

fn fed(host: &Host, line: &str, once: bool) -> ContainerConfig {
    ContainerConfig {
        stdin: true,
        stdin_once: once,
        ..host.shell(line)
    }
}

async fn read(stream: &mut Option<Box<dyn tokio::io::AsyncRead + Send + Unpin>>) -> String {
    let mut text = String::new();
    let stream = stream.as_mut().unwrap();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[test]
fn input_reaches_the_container_and_ends_once() {
    on_host(async |host| {
        let line = "cat; echo done >&2; exit 3";
        let id = host.start(fed(&host, line, true)).await;
        let mut streams = attach(&host, &id, ALL).await;
        let text = "0123456789abcde\n".repeat(40_000);
        let mut stdin = streams.stdin.take().unwrap();
        let (mut stdout, mut stderr) = (streams.stdout.take(), streams.stderr.take());
        let feeding = async {
            stdin.write_all(text.as_bytes()).await.unwrap();
            drop(stdin);
        };
        let (_, out, err, exit) =
            tokio::join!(feeding, read(&mut stdout), read(&mut stderr), streams.exit);
        assert!(
            out == text,
            "{} of {} bytes came back",
            out.len(),
            text.len()
        );
        assert_eq!(err, "done\n");
        // How the container ended is not for the attached to know.
        assert_eq!(exit.unwrap(), 0);
        until("the end", async || {
            let status = host.runtime.container_status(&id).await.unwrap();
            (status.state == ContainerState::Exited && status.exit_code == Some(3)).then_some(())
        })
        .await;
        let gone = host.runtime.attach(&id, ALL).await.unwrap_err().to_string();
        assert!(gone.contains("is not running"), "{gone}");
    });
}

#[test]
fn whoever_lets_go_leaves_the_container_running() {
    on_host(async |host| {
        let line = "while read word; do echo got $word; done; echo end";
        let id = host.start(fed(&host, line, false)).await;
        let watcher = AttachConfig {
            stdin: false,
            stderr: false,
            ..ALL
        };
        let watching = attach(&host, &id, watcher).await;
        let mut watched = watching.stdout.unwrap();
        let watching = tokio::spawn(watching.exit);
        for word in ["one", "two"] {
            let mut streams = attach(&host, &id, ALL).await;
            let listening = tokio::spawn(streams.exit);
            let mut stdin = streams.stdin.take().unwrap();
            stdin
                .write_all(format!("{word}\n").as_bytes())
                .await
                .unwrap();
            let mut seen = vec![0; "got one\n".len()];
            streams.stdout.unwrap().read_exact(&mut seen).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&seen), format!("got {word}\n"));
            listening.abort();
        }
        let mut seen = vec![0; "got one\ngot two\n".len()];
        watched.read_exact(&mut seen).await.unwrap();
        assert_eq!(seen, b"got one\ngot two\n");
        watching.abort();
        let status = host.runtime.container_status(&id).await.unwrap();
        assert_eq!(status.state, ContainerState::Running);
    });
}

#[test]
fn a_terminal_is_shared() {
    on_host(async |host| {
        let line = "until [ \"$(busybox stty size)\" = '40 100' ]; do busybox sleep 0.05; done; \
                    read word; echo got $word";
        let config = ContainerConfig {
            tty: true,
            ..fed(&host, line, true)
        };
        let id = host.start(config).await;
        let mut streams = attach(&host, &id, ALL).await;
        let size = TerminalSize {
            width: 100,
            height: 40,
        };
        streams.resize.send(size).await.unwrap();
        let stdin = streams.stdin.as_mut().unwrap();
        stdin.write_all(b"word\n").await.unwrap();
        let (out, exit) = tokio::join!(read(&mut streams.stdout), streams.exit);
        assert!(out.ends_with("got word\r\n"), "{out:?}");
        assert_eq!(exit.unwrap(), 0);
    });
}

#[test]
fn nobody_who_does_not_read_stops_the_others_for_ever() {
    on_host(async |host| {
        let id = host
            .start(host.shell("busybox yes | busybox head -c 400000"))
            .await;
        let listener = AttachConfig {
            stdin: false,
            ..ALL
        };
        // Attached and never read: what it holds is bounded, and letting go frees the container.
        let lazy = attach(&host, &id, listener).await;
        drop(lazy);
        until("the end", async || {
            let status = host.runtime.container_status(&id).await.unwrap();
            (status.state == ContainerState::Exited).then_some(())
        })
        .await;
    });
}
