//! Commands in running containers, with and without a terminal.

use crate::support::{Host, on_host};
use coracle_agent::runtime::{ContainerId, ExecConfig, ExecStreams, Runtime, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn shell(line: &str) -> ExecConfig {
    ExecConfig {
        command: vec!["/bin/sh".into(), "-c".into(), line.into()],
        stdout: true,
        stderr: true,
        ..ExecConfig::default()
    }
}

async fn exec(host: &Host, id: &ContainerId, config: ExecConfig) -> ExecStreams {
    host.runtime.exec(id, config).await.unwrap()
}

async fn all(stream: &mut Option<Box<dyn tokio::io::AsyncRead + Send + Unpin>>) -> String {
    let mut text = String::new();
    stream
        .as_mut()
        .unwrap()
        .read_to_string(&mut text)
        .await
        .unwrap();
    text
}

#[test]
fn a_command_has_pipes_and_an_exit_code() {
    on_host(async |host| {
        let id = host.start(host.shell("sleep 1000")).await;
        let mut streams = exec(&host, &id, shell("echo out; echo err >&2; exit 5")).await;
        assert_eq!(all(&mut streams.stdout).await, "out\n");
        assert_eq!(all(&mut streams.stderr).await, "err\n");
        assert_eq!(streams.exit.await.unwrap(), 5);

        let config = ExecConfig {
            stdin: true,
            ..shell("cat; kill -9 $$")
        };
        let mut streams = exec(&host, &id, config).await;
        let mut stdin = streams.stdin.take().unwrap();
        stdin.write_all(b"through\n").await.unwrap();
        drop(stdin);
        assert_eq!(all(&mut streams.stdout).await, "through\n");
        assert_eq!(streams.exit.await.unwrap(), 137);

        // It is in the container: same processes, same host name, same environment.
        let line =
            "cat /proc/1/cmdline | busybox tr '\\0' ' '; echo; echo $FROM; cat /etc/hostname";
        let mut streams = exec(&host, &id, shell(line)).await;
        assert_eq!(all(&mut streams.stdout).await, "sleep 1000 \nimage\nweb\n");
        let config = ExecConfig {
            command: vec!["missing".into()],
            ..shell("")
        };
        let error = exec(&host, &id, config)
            .await
            .exit
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("executable file not found in $PATH"),
            "{error}"
        );
    });
}

#[test]
fn a_terminal_has_a_size_and_one_output() {
    on_host(async |host| {
        let id = host.start(host.shell("sleep 1000")).await;
        let line = "tty; read x; stty size; echo got $x; exit 4";
        let config = ExecConfig {
            tty: true,
            stdin: true,
            stderr: false,
            ..shell(line)
        };
        let mut streams = exec(&host, &id, config).await;
        streams
            .resize
            .send(TerminalSize {
                width: 100,
                height: 40,
            })
            .await
            .unwrap();
        let mut stdout = streams.stdout.take().unwrap();
        let mut seen = String::new();
        let mut buffer = [0u8; 256];
        while !seen.contains('\n') {
            let count = stdout.read(&mut buffer).await.unwrap();
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        assert!(seen.starts_with("/dev/pts/0"), "{seen:?}");
        streams
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"word\n")
            .await
            .unwrap();
        stdout.read_to_string(&mut seen).await.unwrap();
        assert!(seen.contains("40 100\r\ngot word"), "{seen:?}");
        assert_eq!(streams.exit.await.unwrap(), 4);
    });
}

#[test]
fn letting_go_kills_the_command() {
    on_host(async |host| {
        let id = host.start(host.shell("sleep 1000")).await;
        let mut streams = exec(&host, &id, shell("echo up; exec sleep 4321")).await;
        let mut up = [0u8; 3];
        streams
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut up)
            .await
            .unwrap();
        drop(streams);
        crate::support::until("the command's end", async || {
            let line = "busybox ps | busybox grep -c '[s]leep 4321'";
            let mut streams = exec(&host, &id, shell(line)).await;
            (all(&mut streams.stdout).await == "0\n").then_some(())
        })
        .await;
    });
}
