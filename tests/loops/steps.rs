//! What is done to a workload, step by step, and what each step may make and delete.

use crate::site::Site;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

pub enum Do {
    Create(Value),
    Change(Value),
    AddNode(&'static str),
    /// In the foreground, so that nothing of it is left when it is gone.
    Delete,
}

pub struct Step {
    pub what: &'static str,
    pub act: Do,
    /// Of the status, which must also be of the newest generation.
    pub expected: Value,
    /// Pods that are there then, all with this image.
    pub pods: usize,
    pub image: &'static str,
    pub created: usize,
    pub deleted: usize,
}

pub struct Workload {
    pub resource: ApiResource,
    pub name: &'static str,
    pub steps: Vec<Step>,
}

pub fn run(seed: u64, workload: &Workload) {
    let mut site = Site::new(seed);
    let api: Api<DynamicObject> =
        Api::namespaced_with(site.admin.clone(), "default", &workload.resource);
    for step in &workload.steps {
        let what = format!("{} of seed {seed}", step.what);
        act(&site, &api, workload.name, &step.act);
        let is_gone = matches!(step.act, Do::Delete);
        site.until(&what, |site| match is_gone {
            true => gone(site, &api, workload.name),
            false => settled(site, &api, workload.name, step),
        });
        site.faults.wait_idle();
        let counted = site.faults.take_counted();
        let found = (counted.created.len(), counted.deleted.len());
        assert_eq!(
            found,
            (step.created, step.deleted),
            "made and deleted: {what}"
        );
    }
}

fn act(site: &Site, api: &Api<DynamicObject>, name: &str, act: &Do) {
    site.block_on(async {
        match act {
            Do::Create(object) => {
                let object = serde_json::from_value(object.clone()).expect("an object");
                let params = PostParams::default();
                let made = api.create(&params, &object).await;
                drop(made.expect("it is made"));
            }
            Do::Change(patch) => {
                let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
                let changed = api.patch(name, &params, &patch).await;
                drop(changed.expect("it is changed"));
            }
            Do::AddNode(_) => {}
            Do::Delete => {
                let params = DeleteParams::foreground();
                let deleted = api.delete(name, &params).await;
                drop(deleted.expect("it is deleted"));
            }
        }
    });
    if let Do::AddNode(name) = act {
        site.add_node(name);
    }
}

fn gone(site: &Site, api: &Api<DynamicObject>, name: &str) -> Result<(), String> {
    let left = site.pods("default").len();
    let object = site.block_on(api.get_opt(name)).expect("an answer");
    match (object, left) {
        (None, 0) => Ok(()),
        (object, left) => Err(format!("{left} pods left, {object:?}")),
    }
}

fn settled(site: &Site, api: &Api<DynamicObject>, name: &str, step: &Step) -> Result<(), String> {
    let object = site.block_on(api.get(name)).expect("it is there");
    let status = &object.data["status"];
    let observed = status["observedGeneration"].as_i64();
    let expected = step.expected.as_object().expect("fields");
    let is_there = expected.iter().all(|(key, value)| status[key] == *value);
    let pods = site.pods("default");
    let image = |pod: &k8s_openapi::api::core::v1::Pod| {
        let spec = pod.spec.clone().unwrap_or_default();
        spec.containers.first().and_then(|one| one.image.clone())
    };
    let are_there = pods.len() == step.pods
        && pods
            .iter()
            .all(|pod| image(pod).as_deref() == Some(step.image));
    // Jobs do not say it.
    let is_newest = observed.is_none() || observed == object.metadata.generation;
    if is_there && are_there && is_newest {
        return Ok(());
    }
    let names: Vec<_> = pods
        .iter()
        .map(|pod| (pod.metadata.name.clone(), image(pod)))
        .collect();
    Err(format!("{status} {names:?}"))
}

fn resource(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    })
}

fn new_image(image: &str) -> Do {
    Do::Change(json!({"spec": {"template": template(image)}}))
}

fn scaled(replicas: u32) -> Do {
    Do::Change(json!({"spec": {"replicas": replicas}}))
}

pub fn deployment() -> Workload {
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
                 "template": template("a")},
    });
    let ready = |count: u32| {
        json!({"replicas": count, "updatedReplicas": count, "readyReplicas": count,
               "availableReplicas": count})
    };
    let step = |what, act, count: u32, image, created, deleted| Step {
        what,
        act,
        expected: ready(count),
        pods: count as usize,
        image,
        created,
        deleted,
    };
    Workload {
        resource: resource("apps", "Deployment"),
        name: "web",
        steps: vec![
            step("a Deployment of three", Do::Create(object), 3, "a", 3, 0),
            step("its rollout", new_image("b"), 3, "b", 3, 3),
            step("five of it", scaled(5), 5, "b", 2, 0),
            step("two of it", scaled(2), 2, "b", 0, 3),
            Step {
                what: "its end",
                act: Do::Delete,
                expected: json!({}),
                pods: 0,
                image: "b",
                created: 0,
                deleted: 2,
            },
        ],
    }
}

pub fn replication_controller() -> Workload {
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 4, "selector": {"app": "web"}, "template": template("a")},
    });
    let step = |what, act, count: usize, created, deleted| Step {
        what,
        act,
        expected: json!({"replicas": count}),
        pods: count,
        image: "a",
        created,
        deleted,
    };
    Workload {
        resource: resource("", "ReplicationController"),
        name: "web",
        steps: vec![
            step(
                "a ReplicationController of four",
                Do::Create(object),
                4,
                4,
                0,
            ),
            step("one of it", scaled(1), 1, 0, 3),
            step("six of it", scaled(6), 6, 5, 0),
            step("its end", Do::Delete, 0, 0, 6),
        ],
    }
}

pub fn daemon_set() -> Workload {
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("a")},
    });
    let step = |what, act, nodes: usize, image, created, deleted| Step {
        what,
        act,
        expected: json!({"desiredNumberScheduled": nodes, "numberReady": nodes,
                         "updatedNumberScheduled": nodes}),
        pods: nodes,
        image,
        created,
        deleted,
    };
    Workload {
        resource: resource("apps", "DaemonSet"),
        name: "web",
        steps: vec![
            step("a DaemonSet", Do::Create(object), 2, "a", 2, 0),
            step("its rollout", new_image("b"), 2, "b", 2, 2),
            step("a third node", Do::AddNode("three"), 3, "b", 1, 0),
            step("its end", Do::Delete, 0, "b", 0, 3),
        ],
    }
}

pub fn stateful_set() -> Workload {
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "serviceName": "web",
                 "selector": {"matchLabels": {"app": "web"}}, "template": template("a")},
    });
    let step = |what, act, count: usize, image, created, deleted| Step {
        what,
        act,
        expected: json!({"replicas": count, "readyReplicas": count, "updatedReplicas": count}),
        pods: count,
        image,
        created,
        deleted,
    };
    Workload {
        resource: resource("apps", "StatefulSet"),
        name: "web",
        steps: vec![
            step("a StatefulSet of two", Do::Create(object), 2, "a", 2, 0),
            step("its rollout", new_image("b"), 2, "b", 2, 2),
            step("four of it", scaled(4), 4, "b", 2, 0),
            step("one of it", scaled(1), 1, "b", 0, 3),
            step("its end", Do::Delete, 0, "b", 0, 1),
        ],
    }
}

/// Its pods succeed as soon as they run.
pub fn job() -> Workload {
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {
            "completions": 6, "parallelism": 2, "suspend": true,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a"}]},
            },
        },
    });
    let step = |what, act, expected, pods: usize, created, deleted| Step {
        what,
        act,
        expected,
        pods,
        image: "a",
        created,
        deleted,
    };
    let none = json!({"active": null, "succeeded": null, "startTime": null});
    let all = json!({"active": null, "succeeded": 6, "failed": null,
                     "uncountedTerminatedPods": {}, "ready": 0});
    let go = Do::Change(json!({"spec": {"suspend": false}}));
    Workload {
        resource: resource("batch", "Job"),
        name: "web",
        steps: vec![
            step("a Job that waits", Do::Create(object), none, 0, 0, 0),
            step("its six completions", go, all, 6, 6, 0),
            step("its end", Do::Delete, json!({}), 0, 0, 6),
        ],
    }
}
