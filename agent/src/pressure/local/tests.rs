//! Limits against what was measured.

use super::*;
use crate::usage::DiskUse;
use crate::usage::pods::ContainerDisk;
use expect_test::expect;
use serde_json::json;

fn pod(limit: Option<&str>, size_limit: &str, medium: &str) -> Pod {
    let limits = limit.map_or(json!({}), |limit| json!({ "ephemeral-storage": limit }));
    serde_json::from_value(json!({
        "metadata": { "name": "web", "uid": "u" },
        "spec": {
            "volumes": [{ "name": "x", "emptyDir": { "sizeLimit": size_limit, "medium": medium } }],
            "containers": [
                { "name": "a", "resources": { "limits": limits } },
                { "name": "b" },
            ],
        },
    }))
    .unwrap()
}

fn mib(count: u64) -> DiskUse {
    DiskUse {
        bytes: count << 20,
        inodes: 1,
    }
}

/// Mebibytes of the volume, of a's layer and of its logs.
fn disk(volume: u64, root: u64, logs: u64) -> PodDisk {
    PodDisk {
        containers: vec![ContainerDisk {
            name: "a".into(),
            root: mib(root),
            logs: mib(logs),
        }],
        volumes: vec![("x".into(), mib(volume))],
        other: DiskUse::default(),
    }
}

#[test]
fn each_limit_has_its_words() {
    let mut said = Vec::new();
    for (limit, [volume, root, logs], has_image_fs) in [
        (None, [10, 90, 90], false),
        (None, [11, 0, 0], false),
        (Some("20Mi"), [10, 6, 5], false),
        (Some("20Mi"), [10, 5, 5], false),
        (Some("20Mi"), [0, 21, 0], false),
        (Some("20Mi"), [0, 21, 0], true),
    ] {
        let pod = pod(limit, "10Mi", "");
        let found = violation(&pod, &disk(volume, root, logs), has_image_fs);
        said.push(found.unwrap_or_else(|| "within".into()));
    }
    // Of the container: beyond its own limit, while the pod's is that of two containers.
    let mut two = pod(Some("20Mi"), "0", "");
    let spec = two.spec.as_mut().unwrap();
    spec.containers[1].resources = spec.containers[0].resources.clone();
    for has_image_fs in [false, true] {
        let found = violation(&two, &disk(0, 21, 0), has_image_fs);
        said.push(found.unwrap_or_else(|| "within".into()));
    }
    expect![[r#"
        within
        Usage of EmptyDir volume "x" exceeds the limit "10Mi". 
        Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. 
        within
        Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. 
        Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. 
        Container a exceeded its local ephemeral storage limit "20Mi". 
        within"#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn what_has_no_limit_is_not_measured() {
    assert!(is_limited(&pod(None, "1Mi", "")));
    assert!(is_limited(&pod(Some("1Mi"), "0", "")));
    assert!(!is_limited(&pod(None, "0", "")));
    let in_memory = pod(None, "1Mi", "Memory");
    assert!(!is_limited(&in_memory));
    assert_eq!(violation(&in_memory, &disk(2, 0, 0), false), None);
}
