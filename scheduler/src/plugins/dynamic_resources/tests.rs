//! Claims and slices in; what becomes of pods that use them, out.

use super::*;
use crate::cycle::{self, Outcome, Rotation};
use crate::devices::Devices;
use crate::framework::{Profile, SharedPlugin};
use crate::plugins::scene::{pod, world};
use crate::queue::Queue;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

mod api; // A server that answers as a test says.
mod extended; // Devices behind extended resources.
mod writes; // What is written into claims.

fn read<K: DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// A claim `NAME` for one device of the class `any`; `status` is its status.
fn claim(name: &str, status: Value) -> Value {
    let exactly = json!({"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1});
    let meta = json!({"name": name, "namespace": "default", "uid": format!("u-{name}"),
        "resourceVersion": "1"});
    json!({"metadata": meta, "status": status,
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}})
}

fn allocated_on(node: &str) -> Value {
    let selector = json!({"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": [node]}]}]});
    let result = json!({"request": "r", "driver": "d", "pool": node, "device": "x"});
    json!({"devices": {"results": [result]}, "nodeSelector": selector})
}

/// With a class, and a slice of one device for each of the nodes.
fn devices(nodes: &[&str]) -> Arc<Mutex<Devices>> {
    let mut devices = Devices::default();
    devices.set_class(&read(json!({"metadata": {"name": "any"}, "spec": {}})));
    for node in nodes {
        devices.set_slice(&read(json!({"metadata": {"name": node}, "spec": {
            "driver": "d", "nodeName": node, "devices": [{"name": "x"}],
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}})));
    }
    Arc::new(Mutex::new(devices))
}

fn nobody() -> Client {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::ready(Err::<http::Response<kube::client::Body>, _>(
            std::io::Error::other("nobody answers"),
        ))
    });
    Client::new(service, "default")
}

fn plugin(devices: &Arc<Mutex<Devices>>, client: Client) -> Arc<DynamicResources> {
    let views = Views {
        devices: Arc::clone(devices),
        ..Views::default()
    };
    let args = Args::default();
    Arc::new(DynamicResources::new(client, &views, Clock::system(), args))
}

fn uses(claims: &[&str]) -> Value {
    let claims = claims
        .iter()
        .map(|name| json!({"name": name, "resourceClaimName": name}));
    json!({ "resourceClaims": claims.collect::<Vec<_>>() })
}

fn named(name: &str, claims: &[&str]) -> PodInfo {
    let mut pod = Pod::clone(pod("", uses(claims)).waiting.as_ref().unwrap());
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.uid = Some(format!("u-{name}"));
    PodInfo::new(Arc::new(pod))
}

use k8s_openapi::api::core::v1::Pod;

/// The node, or why there is none.
fn cycle(plugin: &Arc<DynamicResources>, pod: &PodInfo, nodes: &str) -> String {
    let shared: SharedPlugin = Arc::clone(plugin) as SharedPlugin;
    let profile = Profile::new("default-scheduler", vec![(shared, 2)]);
    match cycle::run(
        &profile,
        &world(nodes),
        pod,
        &mut Rotation::default(),
        |_| 0,
    ) {
        Outcome::Node(node) => node.to_string(),
        Outcome::NoFit(diagnosis) => {
            let release = diagnosis.remedy().release.as_ref();
            let release = release.map(|release| match release {
                Release::Devices(claim) => format!(" frees {}", key_of(&**claim)),
                Release::Claim(claim) => format!(" deletes {}", key_of(&**claim)),
            });
            diagnosis.message(pod) + release.as_deref().unwrap_or("")
        }
        Outcome::Failed(why) => why,
    }
}

const TWO: &str = "node a\nnode b";

#[tokio::test]
async fn a_pod_without_claims_is_none_of_its_business() {
    let plugin = plugin(&devices(&[]), nobody());
    let pod = pod("", json!({}));
    assert_eq!(
        crate::plugins::scene::filter(&*plugin, &pod, &world(TWO)),
        "skipped"
    );
    assert!(plugin.pre_enqueue(&pod));
    assert!(plugin.reserve(&pod, "a").is_ok());
}

#[tokio::test]
async fn claims_and_classes_must_be_there() {
    let devices = devices(&["b"]);
    let plugin = plugin(&devices, nobody());
    let said = |claims: &[&str]| {
        let said = cycle(&plugin, &named("p", claims), TWO);
        said.strip_prefix("0/2 nodes are available: ")
            .unwrap_or(&said)
            .to_owned()
    };
    let end = " no new claims to deallocate";
    assert_eq!(
        said(&["c"]),
        format!("could not find ResourceClaim \"default/c\".{end}")
    );
    devices.lock().set_claim(&read(claim("c", json!({}))));
    assert_eq!(said(&["c"]), "b");
    let mut going = claim("going", json!({}));
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into();
    devices.lock().set_claim(&read(going));
    assert_eq!(
        said(&["c", "going"]),
        format!("resourceclaim \"going\" is being deleted.{end}")
    );
    let mut classless = claim("other", json!({}));
    classless["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "none".into();
    devices.lock().set_claim(&read(classless));
    assert_eq!(
        said(&["other"]),
        format!("request r: device class none does not exist.{end}")
    );
}

#[tokio::test]
async fn a_generated_claim_must_be_the_pods_own() {
    let devices = devices(&["a"]);
    let plugin = plugin(&devices, nobody());
    let template = json!({"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]});
    let mut pod = Pod::clone(pod("", template).waiting.as_ref().unwrap());
    let said = |pod: &Pod| {
        let pod = PodInfo::new(Arc::new(pod.clone()));
        claims::of_pod(&pod, &plugin.writer.devices.lock()).map(|claims| claims.len())
    };
    let missing = "pod \"default/new\": ResourceClaim not created yet";
    assert_eq!(said(&pod), Err(missing.to_owned()));
    pod.status = serde_json::from_value(
        json!({"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "made"}]}),
    )
    .unwrap();
    let mut made = claim("made", json!({}));
    devices.lock().set_claim(&read(made.clone()));
    assert_eq!(
        said(&pod),
        Err(
            "ResourceClaim default/made was not created for Pod default/new (Pod is not owner)"
                .to_owned()
        )
    );
    made["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
        "name": "new", "uid": "new", "controller": true}]);
    devices.lock().set_claim(&read(made));
    assert_eq!(said(&pod), Ok(1));
}

#[tokio::test]
async fn two_pods_never_get_one_device() {
    let devices = devices(&["a"]);
    let plugin = plugin(&devices, nobody());
    for name in ["one", "two"] {
        devices.lock().set_claim(&read(claim(name, json!({}))));
    }
    let (first, second) = (named("p", &["one"]), named("q", &["two"]));
    assert_eq!(cycle(&plugin, &first, "node a"), "a");
    plugin.reserve(&first, "a").unwrap();
    assert_eq!(
        cycle(&plugin, &second, "node a"),
        "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"
    );
    assert_eq!(
        cycle(&plugin, &named("r", &["one"]), "node a"),
        "0/1 nodes are available: resource claim default/one is in the process of being \
         allocated. no new claims to deallocate"
    );
    plugin.unreserve(&first, "a");
    assert_eq!(cycle(&plugin, &second, "node a"), "a");
}

#[tokio::test]
async fn what_is_wrong_with_a_claim_ends_the_cycle() {
    let devices = devices(&["a", "b"]);
    let plugin = plugin(&devices, nobody());
    let mut broken = claim("c", json!({}));
    broken["spec"]["devices"]["requests"][0]["exactly"]["selectors"] =
        json!([{"cel": {"expression": "device.attributes['d'].none"}}]);
    devices.lock().set_claim(&read(broken));
    assert_eq!(
        cycle(&plugin, &named("p", &["c"]), TWO),
        "running \"DynamicResources\" filter plugin: claim default/c: selector #0: CEL runtime \
         error: no such key: none"
    );
}

#[tokio::test]
async fn an_allocated_claim_draws_its_pods_to_its_node() {
    let devices = devices(&["a", "b"]);
    let plugin = plugin(&devices, nobody());
    let status = json!({"allocation": allocated_on("b")});
    devices.lock().set_claim(&read(claim("c", status)));
    assert_eq!(cycle(&plugin, &named("p", &["c"]), TWO), "b");
    plugin.reserve(&named("p", &["c"]), "b").unwrap();
    assert_eq!(
        cycle(&plugin, &named("p", &["c"]), "node a"),
        "0/1 nodes are available: 1 resourceclaim not available on the node. deallocation of \
         ResourceClaim completed frees default/c"
    );
    let others = json!({"allocation": allocated_on("b"),
        "reservedFor": [{"resource": "pods", "name": "other", "uid": "u-other"}]});
    devices.lock().set_claim(&read(claim("c", others)));
    assert_eq!(
        cycle(&plugin, &named("p", &["c"]), "node a"),
        "0/1 nodes are available: 1 resourceclaim not available on the node. still not schedulable"
    );
}

#[tokio::test]
async fn the_sooner_the_alternative_the_better_the_node() {
    let devices = devices(&["a", "b"]);
    let plugin = plugin(&devices, nobody());
    let mut picky = claim("c", json!({}));
    let on_b = json!([{"cel": {"expression": "device.attributes['d'].fast"}}]);
    picky["spec"]["devices"]["requests"] = json!([{"name": "r", "firstAvailable": [
        {"name": "fast", "deviceClassName": "any", "count": 1, "selectors": on_b},
        {"name": "slow", "deviceClassName": "any", "count": 1}]}]);
    devices.lock().set_claim(&read(picky));
    for (node, is_fast) in [("a", false), ("b", true)] {
        devices
            .lock()
            .set_slice(&read(json!({"metadata": {"name": node}, "spec": {
            "driver": "d", "nodeName": node,
            "devices": [{"name": "x", "attributes": {"fast": {"bool": is_fast}}}],
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}})));
    }
    let pod = named("p", &["c"]);
    assert_eq!(cycle(&plugin, &pod, TWO), "b");
    let task = plugin.last(&pod).unwrap();
    assert_eq!((task.score("a"), task.score("b")), (7, 8));
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_outside_the_queue_until_its_claim_comes() {
    let devices = devices(&["a"]);
    let shared: SharedPlugin = plugin(&devices, nobody());
    let queue = Queue::new(Profile::new("default-scheduler", vec![(shared, 2)]));
    let now = Instant::now();
    queue.set(Arc::new(named("p", &["c"])), now);
    assert_eq!(queue.depth().active, 0);
    for name in ["other", "c"] {
        assert_eq!(queue.depth().active, 0);
        let new = read(claim(name, json!({})));
        devices.lock().set_claim(&new);
        queue.world_changed(WorldChange::ResourceClaim { old: None, new }, now);
    }
    assert_eq!(queue.next().await.pod.uid, "u-p");
}

#[tokio::test]
async fn what_may_help_is_told() {
    let devices = devices(&["a"]);
    let plugin = plugin(&devices, nobody());
    let plain: Arc<ResourceClaim> = read(claim("mine", json!({})));
    devices.lock().set_claim(&plain);
    let pod = named("p", &["mine"]);
    let change = |old: Option<Value>, new: Value| WorldChange::ResourceClaim {
        old: old.map(read),
        new: read(new),
    };
    let allocated = || json!({"allocation": allocated_on("a")});
    let gone = |claim: Value| WorldChange::ResourceClaimGone(read(claim));
    let class_came = WorldChange::DeviceClass {
        old: None,
        new: read(json!({"metadata": {"name": "k"}, "spec": {}})),
    };
    for (change, helps) in [
        (change(None, claim("mine", json!({}))), true),
        (change(None, claim("other", json!({}))), false),
        (
            change(Some(claim("other", allocated())), claim("other", json!({}))),
            true,
        ),
        (
            change(Some(claim("other", json!({}))), claim("other", allocated())),
            false,
        ),
        (
            change(Some(claim("mine", json!({}))), claim("mine", json!({}))),
            false,
        ),
        (
            change(Some(claim("mine", json!({}))), claim("mine", allocated())),
            true,
        ),
        (WorldChange::ResourceSlice, true),
        (class_came, true),
        (gone(claim("other", json!({}))), false),
        (gone(claim("other", allocated())), true),
        (WorldChange::PodGone(Arc::new(named("q", &["other"]))), true),
        (WorldChange::PodGone(Arc::new(named("q", &[]))), false),
    ] {
        assert_eq!(plugin.can_help(&change, &pod), helps, "{change:?}");
    }
}

#[test]
fn names_of_shares_are_uids() {
    let (one, other) = (random_uid(), random_uid());
    assert_ne!(one, other);
    let lengths: Vec<usize> = one.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(one.as_bytes()[14], b'4');
    assert!(b"89ab".contains(&one.as_bytes()[19]), "{one}");
}
