//! The agent goes and comes back; containers do not notice.

use crate::support::{on_host, reopen, until};
use coracle_agent::runtime::{ContainerState, EventKind, Runtime, SandboxState};
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn what_an_agent_keeps_is_for_root_alone() {
    on_host(async |host| {
        let directory = host.directory.clone();
        drop(host);
        let agent = directory.path().join("agent");
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        reopen(directory.path()).await;
        let mode = agent.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
    });
}

/// An agent that was killed while it made a sandbox leaves a record without namespaces.
#[test]
fn a_sandbox_that_was_never_made_whole_is_not_ready() {
    on_host(async |host| {
        host.sandbox().await;
        host.sandbox_with(|config| config.host_network = true).await;
        let directory = host.directory.clone();
        drop(host);
        let states = async || {
            let listed = reopen(directory.path()).await.list_sandboxes().await;
            let listed = listed.unwrap().into_iter();
            let mut states: Vec<_> = listed
                .map(|one| (one.config.host_network, one.state, one.network_namespace))
                .collect();
            states.sort_by_key(|(is_host, _, _)| *is_host);
            states
        };
        let before = states().await;
        assert!(before.iter().all(|one| one.1 == SandboxState::Ready));
        let pinned = before[0].2.clone().unwrap();
        umount2(&pinned, MntFlags::MNT_DETACH).unwrap();
        fs::remove_file(&pinned).unwrap();
        let after = states().await;
        assert_eq!(after[0].1, SandboxState::NotReady);
        assert_eq!(after[1].1, SandboxState::Ready);
    });
}

#[test]
fn containers_and_their_logs_outlive_the_agent() {
    on_host(async |host| {
        let line =
            "i=0; while [ ! -e /stop ]; do echo $i; i=$((i+1)); sleep 0.01; done; echo end; exit 6";
        let config = host.shell(line);
        let log = config.log_path.clone();
        let id = host.start(config).await;
        let before = host.runtime.container_status(&id).await.unwrap();
        let directory = host.directory.clone();
        drop(host); // As kill -9 would leave it: nothing is told to the shim.
        let lines = fs::read_to_string(&log).unwrap().lines().count();
        until("lines without an agent", async || {
            (fs::read_to_string(&log).unwrap().lines().count() > lines + 10).then_some(())
        })
        .await;

        let runtime = reopen(directory.path()).await;
        let after = runtime.container_status(&id).await.unwrap();
        assert_eq!(before, after);
        assert_eq!(
            runtime.list_sandboxes().await.unwrap()[0].state,
            SandboxState::Ready
        );
        let mut events = runtime.events();
        let exec = coracle_agent::runtime::ExecConfig {
            command: vec!["/bin/sh".into(), "-c".into(), "echo > /stop".into()],
            ..Default::default()
        };
        assert_eq!(
            runtime.exec(&id, exec).await.unwrap().exit.await.unwrap(),
            0
        );
        let end = EventKind::Exited {
            exit_code: 6,
            reason: "Error".into(),
        };
        assert_eq!(events.recv().await.unwrap().kind, end);
        let texts = crate::support::texts(&log);
        let numbers: Vec<&str> = texts.lines().collect();
        for (number, line) in numbers[..numbers.len() - 1].iter().enumerate() {
            assert_eq!(
                *line,
                format!("stdout: {number}"),
                "a line is missing or doubled"
            );
        }
        assert_eq!(numbers.last(), Some(&"stdout: end"));
    });
}

#[test]
fn an_end_without_an_agent_is_found_later() {
    on_host(async |host| {
        let id = host.start(host.shell("sleep 0.3; exit 9")).await;
        let exit = host
            .directory
            .path()
            .join("agent/containers")
            .join(&id.0)
            .join("exit.json");
        let directory = host.directory.clone();
        drop(host);
        until("the exit record", async || exit.exists().then_some(())).await;
        let runtime = reopen(directory.path()).await;
        let status = runtime.container_status(&id).await.unwrap();
        assert_eq!(
            (status.state, status.exit_code),
            (ContainerState::Exited, Some(9))
        );
    });
}

#[test]
fn a_killed_shim_takes_its_container_along() {
    on_host(async |host| {
        let id = host.start(host.shell("sleep 1000")).await;
        let pid = host.pid(&id).await;
        kill(Pid::from_raw(parent(pid)), Signal::SIGKILL).unwrap();
        let status = host.exited(&id).await;
        assert_eq!(status.exit_code, Some(255));
        assert_eq!(status.reason, "ContainerStatusUnknown");
        until("the container's end", async || {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (state.is_empty() || state.contains(") Z ")).then_some(())
        })
        .await;
    });
}

#[test]
fn two_agents_do_not_share_a_directory() {
    on_host(async |host| {
        let config =
            coracle_agent::runtime::embedded::Config::new(&host.directory.path().join("agent"));
        let error = coracle_agent::runtime::embedded::EmbeddedRuntime::open(config).unwrap_err();
        assert!(error.to_string().contains("another agent uses"), "{error}");
    });
}

/// Each container costs its shim: what is its own must stay small.
const SHIM_PRIVATE_KB_MAX: u64 = 1200;

#[test]
fn a_shim_is_small() {
    on_host(async |host| {
        let id = host.start(host.shell("sleep 1000")).await;
        let pid = host.pid(&id).await;
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", parent(pid))).unwrap();
        // What is clean is the program itself, which the agent runs too.
        let dirty = rollup
            .lines()
            .find_map(|line| line.strip_prefix("Private_Dirty:"))
            .unwrap();
        let kb: u64 = dirty.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kb < SHIM_PRIVATE_KB_MAX, "{rollup}");
    });
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn nobody_writes_to_the_program_that_a_container_came_from() {
    on_host(async |host| {
        let id = host.start(host.shell("sleep 1000")).await;
        let pid = host.pid(&id).await;
        let program = format!("/proc/{}/exe", parent(pid));
        assert!(fs::File::options().write(true).open(&program).is_err());
        // Not merely busy as long as it runs.
        let mount = nix::sys::statvfs::statvfs(program.as_str()).unwrap();
        assert!(
            mount
                .flags()
                .contains(nix::sys::statvfs::FsFlags::ST_RDONLY)
        );
    });
}
