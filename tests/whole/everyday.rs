//! What people do with kubectl every day on a control plane: diff, edit, explain, wrong manifests,
//! watches, paused rollouts, cascades. With every kubectl there is, as each asks in its own way.

use crate::lab::{Cluster, Lab, all_text, kubectls, wait};
use crate::workloads::{IMAGE, IMAGE_2, web};
use std::process::Stdio;

/// Runs `check` with each kubectl; a namespace each keeps them apart.
fn with_each(cluster: &Cluster, check: impl Fn(&Cluster)) {
    for kubectl in kubectls() {
        let cluster = Cluster {
            kubectl,
            ..cluster.clone()
        };
        check(&cluster);
        cluster.kubectl(&["delete", "deployments", "--all", "--cascade=foreground"]);
    }
}

fn file(cluster: &Cluster, manifest: &str) -> String {
    let path = cluster.host.data_dir.join("everyday.yaml");
    std::fs::write(&path, manifest).unwrap();
    path.display().to_string()
}

#[test]
fn a_change_is_shown_before_it_is_made_and_edited_in_place() {
    let mut lab = Lab::new();
    let cluster = lab.server("edit", &[]);
    with_each(&cluster, |cluster| {
        cluster.apply(&web(IMAGE, 1));
        assert_eq!(
            cluster.value(&["deployment", "web"], "{.metadata.generation}"),
            "1"
        );
        let path = file(cluster, &web(IMAGE, 2));
        let shown = cluster.try_kubectl(&["diff", "-f", &path]).unwrap_err();
        assert!(
            shown.contains("\n-  replicas: 1\n+  replicas: 2\n"),
            "{shown}"
        );
        let path = file(cluster, &web(IMAGE, 1));
        assert_eq!(cluster.kubectl(&["diff", "-f", &path]), "");

        let edit = |script: &str| {
            let mut command = cluster.kubectl_command(&["edit", "deployment", "web"]);
            command.env("EDITOR", format!("sed -i '{script}'"));
            all_text(&command.output().unwrap())
        };
        assert!(edit("s/replicas: 1/replicas: 3/").contains("deployment.apps/web edited"));
        assert_eq!(
            cluster.value(&["deployment", "web"], "{.spec.replicas}"),
            "3"
        );
        let refused = edit("s/replicas: 3/replicas: -3/");
        assert!(
            refused.contains("deployments.apps \"web\" is invalid"),
            "{refused}"
        );
        assert!(edit("s/no such text//").contains("no changes made"));

        let fields = cluster.kubectl(&["explain", "deployment", "--recursive"]);
        assert!(
            fields.contains("maxSurge") && fields.contains("terminationGracePeriodSeconds"),
            "{fields}"
        );
        let wrong = cluster
            .try_kubectl(&["explain", "pods.spec.nosuch"])
            .unwrap_err();
        assert!(wrong.contains("field \"nosuch\" does not exist"), "{wrong}");
    });
}

#[test]
fn a_wrong_manifest_is_told_what_is_wrong() {
    let mut lab = Lab::new();
    let cluster = lab.server("wrong", &[]);
    with_each(&cluster, |cluster| {
        let refused = |manifest: &str| {
            let path = file(cluster, manifest);
            cluster.try_kubectl(&["apply", "-f", &path]).unwrap_err()
        };
        let unknown = web(IMAGE, 1).replace("replicas:", "replicass:");
        let text = refused(&unknown);
        assert!(text.contains("unknown field \"spec.replicass\""), "{text}");
        let path = file(cluster, &unknown);
        let warned = cluster.kubectl_command(&["create", "-f", &path, "--validate=warn"]);
        let warned = all_text(&{ warned }.output().unwrap());
        assert!(
            warned.contains("Warning: unknown field \"spec.replicass\"")
                && warned.contains("deployment.apps/web created"),
            "{warned}"
        );

        let text = refused(&web(IMAGE, 1).replace("replicas: 1", "replicas: one"));
        let of_type = "spec:map[replicas:one]]\": unrecognized type: int32";
        assert!(text.contains(of_type), "{text}");
        let values = web("\"\"", 1).replace("name: web }", "name: Web_1 }");
        let text = refused(&values);
        for part in [
            "The Deployment \"Web_1\" is invalid",
            "metadata.name: Invalid value: \"Web_1\": a lowercase RFC 1123 subdomain",
            "spec.template.spec.containers[0].image: Required value",
        ] {
            assert!(text.contains(part), "should tell {part:?}: {text}");
        }
        let patch = r#"{"spec":{"replicas":"x"}}"#;
        let text = cluster
            .try_kubectl(&["patch", "deployment", "web", "-p", patch])
            .unwrap_err();
        assert!(
            text.starts_with("The request is invalid: patch: Invalid value:"),
            "{text}"
        );

        let path = file(
            cluster,
            &web(IMAGE, 1).replace("name: web }", "name: dry }"),
        );
        let dry = cluster.kubectl(&["create", "-f", &path, "--dry-run=server"]);
        assert_eq!(dry, "deployment.apps/dry created (server dry run)\n");
        let gone = cluster
            .try_kubectl(&["get", "deployment", "dry"])
            .unwrap_err();
        assert!(
            gone.contains("deployments.apps \"dry\" not found"),
            "{gone}"
        );
    });
}

#[test]
fn a_watch_prints_each_change() {
    let mut lab = Lab::new();
    let cluster = lab.server("watch", &[]);
    with_each(&cluster, |cluster| {
        let path = cluster.host.data_dir.join("watched");
        let output = std::fs::File::create(&path).unwrap();
        let seen = || std::fs::read_to_string(&path).unwrap();
        let mut child = cluster
            .kubectl_command(&["get", "configmaps", "--watch", "--output-watch-events"])
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait("the watch shows what is there", || {
            seen().contains("kube-root-ca.crt").then_some(())
        });
        let row = |event: &str, data: &str| {
            seen().lines().any(|line| {
                let cells: Vec<&str> = line.split_whitespace().collect();
                cells.get(..3) == Some(&[event, "settings", data])
            })
        };
        cluster.kubectl(&["create", "configmap", "settings", "--from-literal=a=b"]);
        wait("the creation is shown", || row("ADDED", "1").then_some(()));
        let patch = r#"{"data":{"c":"d"}}"#;
        cluster.kubectl(&["patch", "configmap", "settings", "-p", patch]);
        wait("the change is shown", || row("MODIFIED", "2").then_some(()));
        cluster.kubectl(&["delete", "configmap", "settings"]);
        wait("the deletion is shown", || {
            row("DELETED", "2").then_some(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen().matches("NAME").count(), 1, "{}", seen());
    });
}

#[test]
fn a_paused_rollout_waits_and_history_names_what_was() {
    let mut lab = Lab::new();
    let cluster = lab.server("pause", &[]);
    cluster.apply(&web(IMAGE, 1));
    let revision = "{.metadata.annotations.deployment\\.kubernetes\\.io/revision}";
    cluster.wait_value(&["deployment", "web"], revision, "1");
    cluster.kubectl(&["rollout", "pause", "deployment/web"]);
    let twice = cluster.try_kubectl(&["rollout", "pause", "deployment/web"]);
    assert!(twice.unwrap_err().contains("is already paused"));
    let container = format!("web={IMAGE_2}");
    cluster.kubectl(&["set", "image", "deployment/web", &container]);
    let generation = cluster.value(&["deployment", "web"], "{.metadata.generation}");
    cluster.wait_value(
        &["deployment", "web"],
        "{.status.observedGeneration}",
        &generation,
    );
    let sets = || cluster.kubectl(&["get", "replicasets", "-o", "name"]);
    assert_eq!(sets().lines().count(), 1, "{}", sets());
    let reason = "{.status.conditions[?(@.type==\"Progressing\")].reason}";
    assert_eq!(
        cluster.value(&["deployment", "web"], reason),
        "DeploymentPaused"
    );
    cluster.kubectl(&["rollout", "resume", "deployment/web"]);
    cluster.wait_value(&["deployment", "web"], revision, "2");
    assert_eq!(sets().lines().count(), 2, "{}", sets());
    let second = cluster.kubectl(&["rollout", "history", "deployment/web", "--revision=2"]);
    assert!(
        second.contains("revision #2") && second.contains(IMAGE_2),
        "{second}"
    );
    let none = cluster.try_kubectl(&["rollout", "history", "deployment/web", "--revision=9"]);
    assert!(none.unwrap_err().contains("unable to find"));
    cluster.kubectl(&["rollout", "restart", "deployment/web"]);
    cluster.wait_value(&["deployment", "web"], revision, "3");
}

#[test]
fn the_cascade_decides_what_goes_along() {
    let mut lab = Lab::new();
    let cluster = lab.server("cascade", &[]);
    cluster.apply(&web(IMAGE, 2));
    let names = |kind: &str| cluster.kubectl(&["get", kind, "-o", "name"]);
    wait("the pods are made", || {
        (names("pods").lines().count() == 2).then_some(())
    });
    cluster.kubectl(&["delete", "deployment", "web", "--cascade=orphan"]);
    let set = names("replicasets").trim().to_owned();
    assert!(set.starts_with("replicaset.apps/web-"), "{set}");
    assert_eq!(cluster.value(&[&set], "{.metadata.ownerReferences}"), "");
    assert_eq!(names("pods").lines().count(), 2);
    // In the foreground the owner goes last: nothing is left to wait for.
    cluster.kubectl(&["delete", &set, "--cascade=foreground", "--timeout=100s"]);
    assert_eq!(names("pods"), "");
}
