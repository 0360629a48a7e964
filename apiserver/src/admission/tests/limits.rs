//! LimitRanges: what is filled in, and what is out of bounds.

use super::*;
use expect_test::{Expect, expect};

fn range(limits: Value) -> (&'static str, Value) {
    let range = json!({
        "metadata": { "name": "r", "namespace": "web" },
        "spec": { "limits": limits },
    });
    ("limitranges", range)
}

fn container(name: &str, resources: Value) -> Value {
    json!({ "name": name, "resources": resources })
}

async fn admit(text: &str, limits: Value, object: Value) -> Result<Value, String> {
    let bench = bench(vec![range(limits)]);
    let jane = User::named("jane");
    bench.admit(&as_user(&jane, text), Some(object)).await
}

fn pod(spec: Value) -> Value {
    json!({ "metadata": { "name": "p", "namespace": "web" }, "spec": spec })
}

#[tokio::test]
async fn containers_get_what_they_do_not_mention() {
    let limits = json!([
        { "type": "Container",
          "default": { "cpu": "500m", "memory": "512Mi" },
          "defaultRequest": { "cpu": "100m", "memory": "200Mi" } },
        { "type": "Pod", "max": { "cpu": "2" } },
    ]);
    let own = json!({ "requests": { "cpu": "300m" }, "limits": { "memory": "1Gi" } });
    let spec = json!({
        "containers": [container("a", own), { "name": "b" }],
        "initContainers": [container("i", json!({ "limits": { "cpu": "1", "memory": "1Gi" },
            "requests": { "cpu": "1", "memory": "1Gi" } }))],
    });
    let made = admit("CREATE pods web p", limits, pod(spec)).await.unwrap();
    expect![[
        r#"{"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"cpu":"300m","memory":"200Mi"}}"#
    ]]
    .assert_eq(&made["spec"]["containers"][0]["resources"].to_string());
    expect![[
        r#"{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"100m","memory":"200Mi"}}"#
    ]]
    .assert_eq(&made["spec"]["containers"][1]["resources"].to_string());
    let said = &made["metadata"]["annotations"]["kubernetes.io/limit-ranger"];
    expect!["LimitRanger plugin set: memory request for container a; cpu limit for container a; cpu, memory request for container b; cpu, memory limit for container b"]
        .assert_eq(said.as_str().unwrap());
}

async fn check(limits: Value, spec: Value, expected: Expect) {
    let answer = admit("CREATE pods web p", limits, pod(spec)).await;
    let text = answer.map_or_else(|refusal| refusal, |_| "let in".to_owned());
    expected.assert_eq(&text.replace("pods \"p\" is forbidden: ", ""));
}

#[tokio::test]
async fn containers_and_pods_stay_within_bounds() {
    let bounds = |what: &str| {
        json!([{
            "type": what,
            "min": { "cpu": "100m" },
            "max": { "memory": "1Gi" },
            "maxLimitRequestRatio": { "cpu": "2" },
        }])
    };
    let of = |cpu: &str, limit: &str, memory: &str| {
        container(
            "a",
            json!({
                "requests": { "cpu": cpu, "memory": memory },
                "limits": { "cpu": limit, "memory": memory },
            }),
        )
    };
    let one = |container: Value| json!({ "containers": [container] });
    check(
        bounds("Container"),
        one(of("100m", "200m", "1Gi")),
        expect!["let in"],
    )
    .await;
    check(
        bounds("Container"),
        one(of("50m", "1500m", "2Gi")),
        expect!["[minimum cpu usage per Container is 100m, but request is 50m, maximum memory usage per Container is 1Gi, but limit is 2Gi, cpu max limit to request ratio per Container is 2, but provided ratio is 30.000000]"],
    )
    .await;
    check(
        bounds("Container"),
        one(container("a", json!({}))),
        expect!["[minimum cpu usage per Container is 100m.  No request is specified, maximum memory usage per Container is 1Gi.  No limit is specified, cpu max limit to request ratio per Container is 2, but no request is specified or request is 0]"],
    )
    .await;
    let sidecar = {
        let mut sidecar = of("100m", "200m", "512Mi");
        sidecar["restartPolicy"] = "Always".into();
        sidecar
    };
    let several = json!({
        "initContainers": [sidecar, of("1", "2", "768Mi")],
        "containers": [of("100m", "200m", "512Mi")],
    });
    check(
        bounds("Pod"),
        several,
        expect!["maximum memory usage per Pod is 1Gi, but limit is 1280Mi"],
    )
    .await;
    let whole = json!({
        "resources": { "requests": { "cpu": "50m" }, "limits": { "memory": "1Gi" } },
        "containers": [of("100m", "100m", "2Gi")],
    });
    check(
        bounds("Pod"),
        whole,
        expect!["[minimum cpu usage per Pod is 100m, but request is 50m, maximum memory usage per Pod is 1Gi, but request is 2Gi]"],
    )
    .await;
}

#[tokio::test]
async fn claims_ask_for_so_much() {
    let limits = || {
        let bounds = json!({ "min": { "storage": "1Gi" }, "max": { "storage": "2Gi" } });
        let mut bounds = bounds;
        bounds["type"] = "PersistentVolumeClaim".into();
        json!([bounds])
    };
    let claim = |size: &str| {
        json!({
            "metadata": { "name": "c", "namespace": "web" },
            "spec": { "resources": { "requests": { "storage": size } } },
        })
    };
    let text = "CREATE persistentvolumeclaims web c";
    assert!(admit(text, limits(), claim("1Gi")).await.is_ok());
    expect![[r#"persistentvolumeclaims "c" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1"#]]
        .assert_eq(&admit(text, limits(), claim("1")).await.unwrap_err());
    expect![[r#"persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"#]]
        .assert_eq(&admit(text, limits(), claim("3Gi")).await.unwrap_err());
}

#[tokio::test]
async fn a_pod_grows_as_far_as_its_node_has_room() {
    let jane = User::named("jane");
    let node = |system: &str| {
        json!({
            "metadata": { "name": "n1", "labels": { "kubernetes.io/os": system } },
            "status": { "allocatable": { "cpu": "2", "memory": "1Gi" } },
        })
    };
    let sized = |cpu: &str, generation: u64| {
        let mut pod = pod(json!({
            "nodeName": "n1",
            "overhead": { "cpu": "100m" },
            "containers": [container("a", json!({ "requests": { "cpu": cpu } }))],
        }));
        pod["metadata"]["generation"] = generation.into();
        pod
    };
    let old = Object::from_value(sized("1", 1)).unwrap();
    let ask = async |system: &str, cpu: &str, generation: u64| {
        let bench = bench(vec![("nodes", node(system))]);
        let asked = Asked {
            old: Some(&old),
            ..as_user(&jane, "UPDATE pods/resize web p")
        };
        bench
            .admit(&asked, Some(sized(cpu, generation)))
            .await
            .map(drop)
    };
    assert_eq!(ask("linux", "1900m", 2).await, Ok(()));
    assert_eq!(ask("linux", "5", 1).await, Ok(()), "nothing has changed");
    expect![[r#"pods "p" is forbidden: node didn't have enough allocatable resources: cpu, requested: 2100, allocatable: 2000"#]]
        .assert_eq(&ask("linux", "2", 2).await.unwrap_err());
    // What it has yet, its node has room for, however much that is.
    let mut smaller = sized("1", 2);
    let resources = json!({ "requests": { "cpu": "5" } });
    smaller["status"]["containerStatuses"] = json!([{ "name": "a", "resources": resources }]);
    let bounds = json!([{ "type": "Pod", "max": { "cpu": "2" } }]);
    smaller["spec"]["containers"][0]["resources"]["limits"] = json!({ "cpu": "1" });
    let bench = bench(vec![("nodes", node("linux")), range(bounds)]);
    let asked = Asked {
        old: Some(&old),
        ..as_user(&jane, "UPDATE pods/resize web p")
    };
    let answer = bench.admit(&asked, Some(smaller)).await;
    assert_eq!(answer.map(drop), Ok(()), "it shrinks");
    expect![[r#"pods "p" is forbidden: pod resize is only supported on linux nodes, node "n1" is "windows""#]]
        .assert_eq(&ask("windows", "1", 2).await.unwrap_err());
}
