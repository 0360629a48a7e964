//! Text in, text out: what happens next to a pod.

use super::super::state::Retry;
use super::super::testing::{Scene, at};
use super::{Action, plan};
use expect_test::{Expect, expect};

#[track_caller]
fn check(text: &str, expected: Expect) {
    let scene = Scene::read(text);
    let plan = plan(&scene.view());
    let mut lines = Vec::new();
    for action in &plan.actions {
        lines.push(match action {
            Action::Prepare { attempt, sandbox } => match sandbox {
                Some(sandbox) => format!("prepare on {sandbox}"),
                None => format!("prepare {attempt}"),
            },
            Action::Start(starts) => {
                let starts: Vec<_> = starts
                    .iter()
                    .map(|start| match &start.replaces {
                        Some(old) => format!("{}/{} for {old}", start.name, start.attempt),
                        None => format!("{}/{}", start.name, start.attempt),
                    })
                    .collect();
                format!("start {}", starts.join(", "))
            }
            Action::Kill(kill) => format!(
                "kill {} in {}: {}",
                kill.id, kill.grace_seconds, kill.message
            ),
            Action::Resize(targets) => {
                let names: Vec<_> = targets.iter().map(|target| target.name.as_str()).collect();
                format!("resize {}", names.join(", "))
            }
            Action::Remove(id) => format!("remove {id}"),
            Action::Reset(id) => format!("reset {id}"),
            Action::StopSandbox(id) => format!("stop {id}"),
        });
    }
    for (name, waiting) in &plan.waiting {
        lines.push(format!(
            "wait {name}: {} {}",
            waiting.reason, waiting.message
        ));
    }
    if let Some(verdict) = &plan.verdict {
        lines.push(format!("verdict {}", verdict.reason));
    }
    if let Some(at) = plan.wake_at {
        lines.push(format!("wake {}", at.as_second()));
    }
    if plan.is_down {
        lines.push("down".to_owned());
    }
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_new_pod_gets_its_sandbox_first() {
    check("pod main=a", expect!["prepare 0"]);
    check("pod main=a\n memory preparing", expect![""]);
    check("pod main=a\n memory prepare=@1002", expect!["wake 1002"]);
    // A crash came between sandbox and network.
    check(
        "pod main=a\n sandbox 0 ready",
        expect!["prepare on sandbox-0"],
    );
    check(
        "pod main=a hostnet\n sandbox 0 ready hostnet",
        expect!["start a/0"],
    );
}

#[test]
fn a_sandbox_that_cannot_be_made_waits_longer_each_time() {
    let mut scene = Scene::read("pod main=a");
    let mut after = |retry| {
        scene.memory.prepare_failed(retry, at(1000));
        plan(&scene.view()).wake_at.unwrap().as_second() - 1000
    };
    assert_eq!([(); 4].map(|()| after(Retry::BackedOff)), [1, 2, 4, 8]);
    assert_eq!(
        after(Retry::Soon),
        2,
        "the node's network costs no requests"
    );
    assert_eq!(after(Retry::BackedOff), 16);
    scene.memory.prepared(Default::default());
    scene.memory.prepare_failed(Retry::BackedOff, at(1000));
    assert_eq!(plan(&scene.view()).wake_at, Some(at(1001)));
}

#[test]
fn all_containers_start_in_one_round() {
    check(
        "pod main=a,b\n sandbox 0 ready\n memory ip",
        expect!["start a/0, b/0"],
    );
    check(
        "pod main=a,b\n sandbox 0 ready\n memory ip starting",
        expect![""],
    );
    check(
        "pod main=a,b\n sandbox 0 ready\n a running\n b created\n memory ip",
        expect!["start b/0 for b-0"],
    );
}

#[test]
fn init_containers_go_one_by_one() {
    let pod = "pod init=i,j main=a\n sandbox 0 ready\n memory ip\n";
    check(pod, expect!["start i/0"]);
    check(&format!("{pod} i running"), expect![""]);
    check(&format!("{pod} i exited"), expect!["start j/0"]);
    check(&format!("{pod} i exited\n j exited"), expect!["start a/0"]);
    check(&format!("{pod} i exited code=1"), expect!["start i/1"]);
    // What has started once is not initialized again.
    check(&format!("{pod} a exited code=1"), expect!["start a/1"]);
}

#[test]
fn a_failed_init_container_ends_a_pod_that_does_not_restart() {
    check(
        "pod init=i main=a restart=Never\n sandbox 0 ready\n memory ip\n i exited code=1",
        expect!["stop sandbox-0"],
    );
}

#[test]
fn sidecars_come_before_and_go_after() {
    let pod = "pod init=s*,i main=a restart=Never\n sandbox 0 ready\n memory ip\n";
    check(pod, expect!["start s/0"]);
    check(&format!("{pod} s running unstarted"), expect![""]);
    check(&format!("{pod} s running"), expect!["start i/0"]);
    check(&format!("{pod} s running\n i exited"), expect!["start a/0"]);
    check(
        &format!("{pod} s exited code=1\n i exited\n a running"),
        expect!["start s/1"],
    );
    check(
        &format!("{pod} s running\n i exited\n a exited"),
        expect!["kill s-0 in 30: Stopping container s"],
    );
}

#[test]
fn restart_policies() {
    let ended = |policy: &str, code: &str| {
        format!("pod main=a restart={policy}\n sandbox 0 ready\n memory ip\n a exited {code}")
    };
    check(&ended("Always", ""), expect!["start a/1"]);
    check(&ended("OnFailure", "code=2"), expect!["start a/1"]);
    check(&ended("OnFailure", ""), expect!["stop sandbox-0"]);
    check(&ended("Never", "code=2"), expect!["stop sandbox-0"]);
}

#[test]
fn a_container_that_keeps_failing_waits() {
    let pod = "pod main=a\n sandbox 0 ready\n a exited code=1 at=995 attempt=1\n";
    check(
        &format!("{pod} memory ip crash=a@900"),
        expect![[r#"
            wait a: CrashLoopBackOff back-off 10s restarting failed container=a pod=web_default(u1)
            wake 1005"#]],
    );
    check(
        &format!("{pod} memory ip crash=a@900 waiting=a:X@1005"),
        expect!["wake 1005"],
    );
    check(
        &format!("{pod} memory ip crash=a@900 waiting=a:X@1000"),
        expect![[r#"
        wait a: CrashLoopBackOff back-off 10s restarting failed container=a pod=web_default(u1)
        wake 1005"#]],
    );
    let long_ago = "pod main=a\n sandbox 0 ready\n a exited code=1 at=980\n";
    check(
        &format!("{long_ago} memory ip crash=a@900"),
        expect!["start a/1"],
    );
}

#[test]
fn an_unhealthy_container_is_killed_once() {
    let pod = "pod main=a grace=7\n sandbox 0 ready\n a running\n";
    check(
        &format!("{pod} memory ip failed=a-0"),
        expect!["kill a-0 in 7: Container a failed liveness probe, will be restarted"],
    );
    check(
        &format!("{pod} memory ip failed=a-0 killing=a-0@1007"),
        expect![""],
    );
}

#[test]
fn deletion_kills_then_stops_then_is_done() {
    let pod = "pod main=a,b deleting=20\n";
    check(
        &format!("{pod} sandbox 0 ready\n a running\n b exited\n memory ip"),
        expect!["kill a-0 in 20: Stopping container a"],
    );
    let killing = "sandbox 0 ready\n a running\n b exited\n memory ip killing=a-0@1020";
    check(&format!("{pod} {killing}"), expect![""]);
    // Less grace than before.
    check(
        "pod main=a deleting=0\n sandbox 0 ready\n a running\n memory ip killing=a-0@1020",
        expect!["kill a-0 in 2: Stopping container a"],
    );
    check(
        &format!("{pod} sandbox 0 ready\n a exited\n memory ip"),
        expect!["stop sandbox-0"],
    );
    check(
        &format!("{pod} sandbox 0 dead\n a exited\n memory ip"),
        expect!["down"],
    );
    check(&format!("{pod} memory preparing"), expect![""]);
    check(pod, expect!["down"]);
}

#[test]
fn a_pod_gone_from_the_api_is_taken_down_with_its_own_grace() {
    check(
        "pod main=a gone grace=4\n sandbox 0 ready\n a running",
        expect!["kill a-0 in 4: Stopping container a"],
    );
}

#[test]
fn the_deadline_ends_a_pod() {
    let pod = "sandbox 0 ready\n a running\n memory ip";
    check(
        &format!("pod main=a deadline=160\n {pod}"),
        expect!["wake 1060"],
    );
    check(
        &format!("pod main=a deadline=60\n {pod}"),
        expect![[r#"
            kill a-0 in 30: Stopping container a
            verdict DeadlineExceeded"#]],
    );
}

#[test]
fn after_a_reboot_everything_starts_again_with_its_count() {
    check(
        "pod main=a\n sandbox 0 dead\n a exited code=137",
        expect!["prepare 1"],
    );
    check(
        "pod init=i main=a\n sandbox 0 dead\n sandbox 1 ready\n i exited\n a exited code=137\n memory ip",
        expect!["start i/1"],
    );
    check(
        "pod main=a restart=Never\n sandbox 0 dead\n a exited code=137",
        expect!["down"],
    );
    // The runtime has forgotten all of it.
    check(
        "pod main=a restarts=4\n sandbox 0 ready\n memory ip",
        expect!["start a/5"],
    );
}

#[test]
fn only_the_last_dead_instance_is_kept() {
    check(
        "pod main=a\n sandbox 0 ready\n memory ip
         a exited attempt=0\n a exited attempt=1\n a exited attempt=2\n a running attempt=3",
        expect![[r#"
            remove a-1
            remove a-0"#]],
    );
}

#[test]
fn a_pod_that_ended_stays_down() {
    check(
        "pod main=a phase=Failed\n sandbox 0 dead\n a exited code=1",
        expect!["down"],
    );
}

#[test]
fn ephemeral_containers_are_started_once() {
    check(
        "pod main=a debug=d,e restart=Always
         sandbox 0 ready
         memory ip
         a running
         d exited code=1",
        expect!["start e/0"],
    );
    // They come before what they are to look into.
    check(
        "pod init=i main=a debug=d
         sandbox 0 ready
         memory ip",
        expect!["start d/0, i/0"],
    );
    check(
        "pod main=a debug=d
         sandbox 0 ready
         memory ip waiting=d:ErrImagePull@1005
         a running",
        expect!["wake 1005"],
    );
    // Made, and then the agent went.
    check(
        "pod main=a debug=d
         sandbox 0 ready
         memory ip
         a running
         d created",
        expect!["start d/0 for d-0"],
    );
}

#[test]
fn ephemeral_containers_do_not_keep_a_pod_alive() {
    check(
        "pod main=a debug=d restart=Never grace=5
         sandbox 0 ready
         memory ip
         a exited
         d running",
        expect!["kill d-0 in 5: Stopping container d"],
    );
}

#[test]
fn running_containers_are_resized_in_place() {
    let pod = "pod main=a,b size=a:100m/200m
         sandbox 0 ready
         a running
         b running";
    check(&format!("{pod}\nmemory ip"), expect!["resize a"]);
    check(&format!("{pod}\nmemory ip resizing"), expect![""]);
    check(
        &format!("{pod}\nmemory ip resizefailed=@1005"),
        expect!["wake 1005"],
    );
    // What does not run is started with its size; the pod makes room first.
    check(
        "pod main=a,b size=a:100m/200m
         sandbox 0 ready
         memory ip podbehind
         b running",
        expect!["resize "],
    );
    check(
        "pod main=a,b size=a:100m/200m
         sandbox 0 ready
         memory ip podbehind resizefailed=@1005
         b running",
        expect![[r#"
            start a/0
            wake 1005"#]],
    );
}

#[test]
fn a_resize_may_take_a_restart_whatever_the_restart_policy() {
    let pod = "pod main=a size=a:100m/200m policy=a:cpu restart=OnFailure
         sandbox 0 ready";
    check(
        &format!("{pod}\nmemory ip podbehind\na running"),
        expect![[r#"
            kill a-0 in 30: Container a resize requires restart
            resize "#]],
    );
    check(
        &format!("{pod}\na running\nmemory ip podbehind restarting=a killing=a-0@1030"),
        expect![""],
    );
    check(
        &format!("{pod}\nmemory ip podbehind restarting=a\na exited at=999"),
        expect!["resize "],
    );
    // Neither a back-off nor an end that would have been good.
    check(
        &format!("{pod}\nmemory ip restarting=a crash=a:1@999\na exited at=999"),
        expect!["start a/1"],
    );
}

#[test]
fn an_end_that_a_rule_says_makes_all_containers_begin_again() {
    let pod = "pod init=i,s* main=a,b all=a:42 restart=Never\n sandbox 0 ready\n memory ip\n";
    let seen = |seen: &str| format!("{pod} {seen}");
    // Another end is no reason.
    check(
        &seen("i exited code=0\n s running\n a exited code=1\n b running"),
        expect![""],
    );
    check(
        &seen("i exited code=0\n s running\n a exited code=42\n b running"),
        expect![[r#"
            kill s-0 in 2: killing
            kill b-0 in 2: killing"#]],
    );
    check(
        &seen("i exited code=0\n s exited\n a exited code=42\n b exited\n memory removing=b-0"),
        expect![[r#"
            reset i-0
            reset s-0"#]],
    );
    check(&seen("a exited code=42"), expect!["reset a-0"]);
    check(
        &seen("memory reset=i:0 reset=s:0 reset=a:3 reset=b:0"),
        expect!["start i/1"],
    );
    check(
        &seen("i exited code=0 attempt=1\n s running attempt=1\n memory reset=a:3 reset=b:0"),
        expect!["start a/4, b/1"],
    );
}
