//! The stories that a newcomer is shown, replayed, and what the events say of them, in order:
//! a Deployment down to its running pod; a node that is emptied and taken back; a node that is
//! lost and returns.

use crate::faults::{start_agent, token};
use crate::lab::{Cluster, Host, LOOK_EVERY, Lab, PATIENCE, import, now};
use crate::pictures;
use crate::workloads::{IMAGE, web, with_images};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// What one event says.
struct Told {
    /// When it was told last: what happens again counts up the event of before.
    at: Timestamp,
    /// Of the event's creation and updates: orders the events of one component.
    revision: u64,
    component: String,
    object: String,
    reason: String,
    message: String,
}

impl Told {
    fn line(&self) -> String {
        format!(
            "{} {} {}: {}",
            self.at, self.object, self.reason, self.message
        )
    }
}

fn told(cluster: &Cluster) -> Vec<Told> {
    let text = cluster.kubectl(&["get", "events", "-A", "-o", "json"]);
    let list: Value = serde_json::from_str(&text).unwrap();
    let mut all: Vec<Told> = list["items"].as_array().unwrap().iter().map(one).collect();
    all.sort_by_key(|told| told.revision);
    all
}

fn one(event: &Value) -> Told {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or("");
    let component = [text("/source/component"), text("/reportingComponent")];
    let at = [text("/lastTimestamp"), text("/eventTime")];
    let first = |of: [&str; 2]| {
        of.into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or("")
            .to_owned()
    };
    Told {
        at: first(at)
            .parse()
            .unwrap_or_else(|error| panic!("{error}: {event}")),
        revision: text("/metadata/resourceVersion").parse().unwrap(),
        component: first(component),
        object: format!(
            "{}/{}",
            text("/involvedObject/kind"),
            text("/involvedObject/name")
        ),
        reason: text("/reason").to_owned(),
        message: text("/message").to_owned(),
    }
}

/// Of an object whose name begins so: a reason, and a part of the message.
type Step<'a> = (&'a str, &'a str, &'a str);

/// Waits until all of the steps are told, none of them before the one above it. What one component
/// tells comes in its order. Between components, which tell on their own, the times count, which
/// have seconds only.
#[track_caller]
fn in_order(cluster: &Cluster, steps: &[Step]) {
    let end = now() + PATIENCE;
    loop {
        let all = told(cluster);
        let Some(wrong) = misplaced(&all, steps) else {
            return;
        };
        let story: Vec<String> = all.iter().map(Told::line).collect();
        assert!(now() < end, "{wrong}\n\nof\n{}", story.join("\n"));
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What keeps a story from being the one of the steps.
fn misplaced(all: &[Told], steps: &[Step]) -> Option<String> {
    let is_step = |told: &Told, (object, reason, message): &Step| {
        told.object.starts_with(object) && told.reason == *reason && told.message.contains(message)
    };
    let mut before: Option<&Told> = None;
    for step in steps {
        let Some(after) = all.iter().rfind(|told| is_step(told, step)) else {
            return Some(format!("{step:?} is not told"));
        };
        if let Some(before) = before {
            let is_one = before.component == after.component;
            let slack = SignedDuration::from_secs(1);
            if is_one && before.revision > after.revision || before.at > after.at + slack {
                return Some(format!(
                    "not in order:\n{}\n{}",
                    before.line(),
                    after.line()
                ));
            }
        }
        before = Some(after);
    }
    None
}

#[test]
fn a_deployment_becomes_a_running_pod_step_by_step() {
    let mut lab = Lab::new();
    let cluster = with_images(&mut lab, "steps");
    cluster.apply(&web(IMAGE, 1));
    cluster.rolled_out("deployment/web");

    let name = |kind: &str| cluster.value(&[kind, "-l", "app=web"], "{.items[0].metadata.name}");
    let (set, pod) = (name("replicasets"), name("pods"));
    let (of_set, of_pod) = (format!("ReplicaSet/{set}"), format!("Pod/{pod}"));
    let (scaled, created) = (
        format!("Scaled up replica set {set} from 0 to 1"),
        format!("Created pod: {pod}"),
    );
    let assigned = format!("Successfully assigned default/{pod} to steps");
    in_order(
        &cluster,
        &[
            ("Deployment/web", "ScalingReplicaSet", &scaled),
            (&of_set, "SuccessfulCreate", &created),
            (&of_pod, "Scheduled", &assigned),
            (&of_pod, "Pulled", "already present on machine"),
            (&of_pod, "Created", "Container created"),
            (&of_pod, "Started", "Container started"),
        ],
    );

    let owners = "{.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].name}";
    assert_eq!(cluster.value(&["pod", &pod], owners), of_set);
    assert_eq!(
        cluster.value(&["replicaset", &set], owners),
        "Deployment/web"
    );
    let since = |kind: &str| -> Timestamp {
        let path = format!("{{.status.conditions[?(@.type==\"{kind}\")].lastTransitionTime}}");
        cluster.value(&["pod", &pod], &path).parse().unwrap()
    };
    let times = ["PodScheduled", "Initialized", "ContainersReady"].map(since);
    assert!(
        times.is_sorted(),
        "the pod's conditions turn in order: {times:?}"
    );
    let available = "{.status.conditions[?(@.type==\"Available\")].reason}";
    cluster.wait_value(
        &["deployment", "web"],
        available,
        "MinimumReplicasAvailable",
    );
}

/// A server and two nodes that have the image.
fn two_nodes(lab: &mut Lab, more: &[&str]) -> (Cluster, [Host; 2]) {
    let server = lab.server("server", more);
    let token = token(&server);
    let archive = pictures::busybox(&lab.path(""), IMAGE);
    let hosts = ["near", "far"].map(|name| {
        let host = lab.host(name);
        start_agent(lab, &server, &host, name, &token);
        lab.wait_ready(&server, name);
        import(&host, &archive);
        host
    });
    (server, hosts)
}

/// A pod for the node `far` that bears the loss of its node for `seconds`.
fn on_far(name: &str, seconds: u32) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{ name: {name} }}
spec:
  nodeSelector: {{ kubernetes.io/hostname: far }}
  terminationGracePeriodSeconds: 1
  tolerations:
  - {{ key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: {seconds} }}
  - {{ key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: {seconds} }}
  containers:
  - name: main
    image: {IMAGE}
    command: ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; done"]
"#
    )
}

/// Drains the node `far`, which holds the pods of the Deployment, of these names.
#[track_caller]
fn drain(server: &Cluster, names: &str) {
    let on = "{.items[*].spec.nodeName}";
    let drained = server.kubectl(&["drain", "far", "--timeout=100s"]);
    for pod in names.split(' ') {
        assert!(drained.contains(&format!("pod/{pod} evicted")), "{drained}");
    }
    assert!(drained.contains("node/far drained"), "{drained}");
    server.rolled_out("deployment/web");
    server.wait_value(&["pods", "-l", "app=web"], on, "near near");
    let set = server.value(&["replicasets"], "{.items[0].metadata.name}");
    let news = server.value(&["pods", "-l", "app=web"], "{.items[0].metadata.name}");
    let (of_set, of_new) = (format!("ReplicaSet/{set}"), format!("Pod/{news}"));
    let of_old = format!("Pod/{}", names.split(' ').next().unwrap());
    let (made, assigned) = (
        format!("Created pod: {news}"),
        format!("Successfully assigned default/{news} to near"),
    );
    in_order(
        server,
        &[
            (
                "Node/far",
                "NodeNotSchedulable",
                "Node far status is now: NodeNotSchedulable",
            ),
            (&of_old, "Killing", "Stopping container web"),
            (&of_new, "Started", ""),
        ],
    );
    in_order(
        server,
        &[
            (&of_set, "SuccessfulCreate", &made),
            (&of_new, "Scheduled", &assigned),
            (&of_new, "Started", ""),
        ],
    );
}

#[test]
fn a_node_is_cordoned_drained_and_taken_back() {
    let mut lab = Lab::new();
    let (server, _hosts) = two_nodes(&mut lab, &[]);
    server.kubectl(&["cordon", "near"]);
    server.apply(&web(IMAGE, 2));
    server.rolled_out("deployment/web");
    let on = "{.items[*].spec.nodeName}";
    assert_eq!(server.value(&["pods"], on), "far far");
    let names = server.value(&["pods"], "{.items[*].metadata.name}");
    server.kubectl(&["uncordon", "near"]);

    server.kubectl(&["cordon", "far"]);
    let row = server.kubectl(&["get", "node", "far"]);
    assert!(row.contains("Ready,SchedulingDisabled"), "{row}");
    assert_eq!(
        server.value(&["pods"], on),
        "far far",
        "what runs there stays"
    );
    server.apply(&on_far("picky", 300));
    let unscheduled = "{.status.conditions[?(@.type==\"PodScheduled\")].message}";
    server.wait_for(&["pod", "picky"], unscheduled, "told of", |message| {
        message.contains("node(s) were unschedulable")
    });

    drain(&server, &names);

    server.kubectl(&["uncordon", "far"]);
    server.wait_value(&["pod", "picky"], "{.status.phase}", "Running");
    in_order(
        &server,
        &[
            (
                "Pod/picky",
                "FailedScheduling",
                "node(s) were unschedulable",
            ),
            (
                "Node/far",
                "NodeSchedulable",
                "Node far status is now: NodeSchedulable",
            ),
            ("Pod/picky", "Started", ""),
        ],
    );
    in_order(
        &server,
        &[
            ("Pod/picky", "FailedScheduling", ""),
            (
                "Pod/picky",
                "Scheduled",
                "Successfully assigned default/picky to far",
            ),
        ],
    );
    assert_eq!(
        server.value(&["pods", "-l", "app=web"], on),
        "near near",
        "nothing moves back"
    );
}

/// The pod of the Deployment runs on the node that is left, and what became of the one before is told.
#[track_caller]
fn moved_on(server: &Cluster, old: &str) {
    let field = "--field-selector=spec.nodeName=near";
    server.wait_value(&["pods", field], "{.items[*].status.phase}", "Running");
    let new = server.value(&["pods", field], "{.items[0].metadata.name}");
    let (of_old, of_new) = (format!("Pod/{old}"), format!("Pod/{new}"));
    let marked = format!("Marking for deletion Pod default/{old}");
    let assigned = format!("Successfully assigned default/{new} to near");
    in_order(
        server,
        &[
            (
                "Node/far",
                "NodeNotReady",
                "Node far status is now: NodeNotReady",
            ),
            (&of_old, "TaintManagerEviction", &marked),
            ("ReplicaSet/web", "SuccessfulCreate", &new),
            (&of_new, "Scheduled", &assigned),
            (&of_new, "Started", ""),
        ],
    );
    in_order(
        server,
        &[
            ("Pod/patient", "NodeNotReady", "Node is not ready"),
            (&of_old, "TaintManagerEviction", &marked),
        ],
    );
    let left = server.value(&["pod", old], "{.metadata.deletionTimestamp}");
    assert!(
        !left.is_empty(),
        "nobody there can end it, so it is there, to be deleted"
    );
}

#[test]
fn a_node_is_lost_its_pods_are_borne_evicted_and_it_returns() {
    let mut lab = Lab::new();
    let (server, hosts) = two_nodes(&mut lab, &["--node-monitor-grace-period", "20s"]);
    server.kubectl(&["cordon", "near"]);
    server.apply(&on_far("patient", 3000));
    server.apply(&web(IMAGE, 1).replace(
        "      containers:",
        "      tolerations:
      - { key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 3 }
      containers:",
    ));
    server.rolled_out("deployment/web");
    server.wait_value(&["pod", "patient"], "{.status.phase}", "Running");
    let old = server.value(&["pods", "-l", "app=web"], "{.items[0].metadata.name}");
    let patient = ["pod", "patient"];
    let uid = server.value(
        &patient,
        "{.metadata.uid} {.status.containerStatuses[0].containerID}",
    );
    server.kubectl(&["uncordon", "near"]);

    lab.set_link(&hosts[1], false);
    let ready = "{.status.conditions[?(@.type==\"Ready\")].status}";
    server.wait_value(&["node", "far"], ready, "Unknown");
    server.wait_value(&patient, ready, "False");
    server.rolled_out("deployment/web");
    moved_on(&server, &old);

    lab.set_link(&hosts[1], true);
    server.wait_value(&["node", "far"], ready, "True");
    server.wait_value(&["node", "far"], "{.spec.taints}", "");
    server.wait_gone(&["pod", &old]);
    server.wait_value(&patient, ready, "True");
    in_order(
        &server,
        &[
            (
                "Node/far",
                "NodeNotReady",
                "Node far status is now: NodeNotReady",
            ),
            ("Node/far", "NodeReady", "Node far status is now: NodeReady"),
        ],
    );
    in_order(
        &server,
        &[
            ("Pod/patient", "NodeNotReady", ""),
            (
                "Pod/patient",
                "TaintManagerEviction",
                "Cancelling deletion of Pod default/patient",
            ),
        ],
    );
    let again = server.value(
        &patient,
        "{.metadata.uid} {.status.containerStatuses[0].containerID}",
    );
    assert_eq!(again, uid, "what was borne has run on all the while");
}
