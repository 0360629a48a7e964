//! Pods that are made to a number, or one a node: none is made or deleted that would not have been.

use serde_json::{Value, json};

use super::{AT_ONCE, Step, Story, at, change, there};
use crate::Config;
use crate::fake_cluster::FakeCluster;

const DEPLOYED: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const REPLICATED: &str = "/api/v1/namespaces/default/replicationcontrollers/web";
const DAEMONS: &str = "/apis/apps/v1/namespaces/default/daemonsets/web";
const SETS: &str = "/apis/apps/v1/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn pods(cluster: &FakeCluster) -> Vec<Value> {
    cluster.api.objects("/api/v1/pods")
}

fn path_of(pod: &Value) -> String {
    format!(
        "{PODS}/{}",
        pod["metadata"]["name"].as_str().expect("a name")
    )
}

/// What scheduler and agents do: pods begin to run, and those that shall end are gone.
fn run_pods(cluster: &FakeCluster) {
    const PINNED: &str = "/spec/affinity/nodeAffinity/\
        requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    for mut pod in pods(cluster) {
        if pod["metadata"]["deletionTimestamp"].is_string() {
            cluster.api.delete(&path_of(&pod));
        } else if pod["spec"]["nodeName"].is_null() {
            let node = pod.pointer(PINNED).cloned();
            pod["spec"]["nodeName"] = node.unwrap_or_else(|| json!("n"));
            pod["status"] = json!({"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"},
            ]});
            cluster.api.put(&path_of(&pod), pod);
        }
    }
}

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": image}],
                 "terminationGracePeriodSeconds": 5, "nodeSelector": {"edge": "yes"}},
    })
}

/// Merges into the specification, of which there is a new generation then.
fn specify(cluster: &FakeCluster, path: &str, spec: &Value) {
    let mut object = cluster.api.get(path).unwrap_or_else(|| json!({"spec": {}}));
    crate::fake_api::merge(&mut object["spec"], spec);
    let before = object["metadata"]["generation"].as_i64().unwrap_or(0);
    object["metadata"]["generation"] = json!(before + 1);
    cluster.api.put(path, object);
}

/// As many pods of this image, none on its way out, and the newest status says so in these fields.
fn are(cluster: &FakeCluster, path: &str, count: usize, image: &str, fields: &[&str]) -> bool {
    let pods = pods(cluster);
    let told = |field: &&str| at(cluster, path, &format!("/status/{field}")) == count;
    let is_one = |pod: &Value| {
        pod["spec"]["containers"][0]["image"] == image
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let newest = at(cluster, path, "/metadata/generation");
    pods.len() == count
        && pods.iter().all(is_one)
        && fields.iter().all(told)
        && at(cluster, path, "/status/observedGeneration") == newest
}

fn are_deployed(cluster: &FakeCluster, count: usize, image: &str, sets: usize) -> bool {
    let fields = ["replicas", "updatedReplicas", "availableReplicas"];
    are(cluster, DEPLOYED, count, image, &fields) && cluster.api.objects(SETS).len() == sets
}

pub(super) static ROLLED_OUT: Story = Story {
    loops: &["deployment", "replicaset"],
    config: Config::default,
    beat: Some(run_pods),
    writes_min: 20,
    names_vary: true,
    steps: &[
        Step {
            what: "three come",
            happens: |cluster| {
                let spec = json!({
                    "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                    "template": template("one"), "revisionHistoryLimit": 1,
                    "progressDeadlineSeconds": 600, "strategy": {"type": "RollingUpdate",
                        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
                });
                specify(cluster, DEPLOYED, &spec);
            },
            takes: AT_ONCE,
            done: |cluster| are_deployed(cluster, 3, "one", 1),
        },
        Step {
            what: "others take their places",
            happens: |cluster| specify(cluster, DEPLOYED, &json!({"template": template("two")})),
            takes: AT_ONCE,
            done: |cluster| are_deployed(cluster, 3, "two", 2),
        },
        Step {
            what: "all go before others come, and what was first is forgotten",
            happens: |cluster| {
                let strategy = json!({"type": "Recreate", "rollingUpdate": null});
                let spec = json!({"template": template("three"), "strategy": strategy});
                specify(cluster, DEPLOYED, &spec);
            },
            takes: AT_ONCE,
            done: |cluster| are_deployed(cluster, 3, "three", 2),
        },
        Step {
            what: "two more come",
            happens: |cluster| specify(cluster, DEPLOYED, &json!({"replicas": 5})),
            takes: AT_ONCE,
            done: |cluster| are_deployed(cluster, 5, "three", 2),
        },
        Step {
            what: "one stays",
            happens: |cluster| specify(cluster, DEPLOYED, &json!({"replicas": 1})),
            takes: AT_ONCE,
            done: |cluster| are_deployed(cluster, 1, "three", 2),
        },
    ],
};

fn are_replicated(cluster: &FakeCluster, count: usize) -> bool {
    let fields = ["replicas", "readyReplicas"];
    are(cluster, REPLICATED, count, "one", &fields)
}

pub(super) static REPLICAS: Story = Story {
    loops: &["replicationcontroller"],
    config: Config::default,
    beat: Some(run_pods),
    writes_min: 15,
    names_vary: true,
    steps: &[
        Step {
            what: "an orphan is taken in, and three come",
            happens: |cluster| {
                let mut orphan = template("one");
                let cost = "controller.kubernetes.io/pod-deletion-cost";
                orphan["metadata"]["annotations"] = json!({ cost: "-1" });
                cluster.api.put(&format!("{PODS}/orphan"), orphan);
                let spec = json!({"replicas": 4, "selector": {"app": "web"},
                                  "template": template("one")});
                specify(cluster, REPLICATED, &spec);
            },
            takes: AT_ONCE,
            done: |cluster| are_replicated(cluster, 4),
        },
        Step {
            what: "one stays",
            happens: |cluster| specify(cluster, REPLICATED, &json!({"replicas": 1})),
            takes: AT_ONCE,
            done: |cluster| {
                are_replicated(cluster, 1) && !there(cluster, &format!("{PODS}/orphan"))
            },
        },
        Step {
            what: "it is let go and another comes",
            happens: |cluster| {
                let other = json!({"metadata": {"labels": {"app": "other"}}});
                change(cluster, &path_of(&pods(cluster)[0]), &other);
            },
            takes: AT_ONCE,
            done: |cluster| {
                let owned = |pod: &&Value| pod["metadata"]["ownerReferences"][0].is_object();
                pods(cluster).len() == 2 && pods(cluster).iter().filter(owned).count() == 1
            },
        },
        Step {
            what: "six are there",
            happens: |cluster| {
                let owned = |pod: &Value| pod["metadata"]["ownerReferences"][0].is_object();
                let lost = pods(cluster).into_iter().filter(|pod| !owned(pod));
                lost.for_each(|pod| cluster.api.delete(&path_of(&pod)));
                specify(cluster, REPLICATED, &json!({"replicas": 6}));
            },
            takes: AT_ONCE,
            done: |cluster| are_replicated(cluster, 6),
        },
    ],
};

fn put_node(cluster: &FakeCluster, name: &str, edge: &str) {
    let node = json!({"metadata": {"labels": {"edge": edge}}});
    cluster.api.put(&format!("/api/v1/nodes/{name}"), node);
}

fn are_on_nodes(cluster: &FakeCluster, count: usize, image: &str) -> bool {
    let fields = [
        "desiredNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    are(cluster, DAEMONS, count, image, &fields)
}

pub(super) static ON_NODES: Story = Story {
    loops: &["daemonset"],
    config: Config::default,
    beat: Some(run_pods),
    writes_min: 10,
    names_vary: true,
    steps: &[
        Step {
            what: "each node has one",
            happens: |cluster| {
                put_node(cluster, "a", "yes");
                put_node(cluster, "b", "yes");
                let spec = json!({
                    "selector": {"matchLabels": {"app": "web"}}, "template": template("one"),
                    "revisionHistoryLimit": 1, "updateStrategy": {"type": "RollingUpdate",
                        "rollingUpdate": {"maxUnavailable": 1}},
                });
                specify(cluster, DAEMONS, &spec);
            },
            takes: AT_ONCE,
            done: |cluster| are_on_nodes(cluster, 2, "one"),
        },
        Step {
            what: "others take their places",
            happens: |cluster| specify(cluster, DAEMONS, &json!({"template": template("two")})),
            takes: AT_ONCE,
            done: |cluster| are_on_nodes(cluster, 2, "two"),
        },
        Step {
            what: "a third node has one, too",
            happens: |cluster| put_node(cluster, "c", "yes"),
            takes: AT_ONCE,
            done: |cluster| are_on_nodes(cluster, 3, "two"),
        },
        Step {
            what: "a node that is none of theirs any more has none",
            happens: |cluster| put_node(cluster, "b", "no"),
            takes: AT_ONCE,
            done: |cluster| are_on_nodes(cluster, 2, "two"),
        },
    ],
};
