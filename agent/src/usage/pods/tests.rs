//! What is measured of a pod's files.

use super::*;
use serde_json::json;
use std::fs;

#[test]
fn logs_and_volumes_on_disk_are_walked() {
    let scratch = tempfile::tempdir().unwrap();
    let places = Places {
        directory: scratch.path().join("pod"),
        logs: scratch.path().join("logs"),
    };
    let on_disk = places
        .directory
        .join("volumes/kubernetes.io~empty-dir/disk");
    fs::create_dir_all(&on_disk).unwrap();
    fs::write(on_disk.join("file"), vec![1; 300_000]).unwrap();
    fs::create_dir_all(places.logs.join("main")).unwrap();
    fs::write(places.logs.join("main/0.log"), vec![1; 100_000]).unwrap();
    let pod: Pod = serde_json::from_value(json!({ "spec": {
        "containers": [],
        "volumes": [
            { "name": "disk", "emptyDir": {} },
            { "name": "memory", "emptyDir": { "medium": "Memory" } },
            { "name": "host", "hostPath": { "path": "/usr" } },
        ],
    } }))
    .unwrap();
    let volumes: Vec<_> = spec(&pod)
        .volumes
        .iter()
        .flatten()
        .filter_map(|volume| Some((volume.name.clone(), local(&places.directory, volume)?)))
        .collect();
    let names: Vec<_> = volumes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["disk"]);
    let mut disk = PodDisk::default();
    let layer = DiskUse {
        bytes: 4096,
        inodes: 1,
    };
    add(&mut disk.containers, "main", layer);
    add(&mut disk.containers, "main", layer);
    let disk = walk(disk, &volumes, &places);
    assert_eq!(disk.containers.len(), 1, "two instances are one container");
    assert_eq!(disk.containers[0].root.bytes, 8192);
    assert!(disk.containers[0].logs.bytes >= 100_000);
    assert!(disk.volume("disk").unwrap().bytes >= 300_000);
    assert!(disk.total().bytes >= 408_192);
}

#[tokio::test]
async fn who_asks_during_a_walk_waits_for_it() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let context = crate::pods::context::testing::bare(scratch.path(), &stop);
    let pod: Pod = serde_json::from_value(json!({ "metadata": { "uid": "u" } })).unwrap();
    let (one, other) = tokio::join!(context.disk_of(&pod), context.disk_of(&pod));
    assert!(Arc::ptr_eq(&one.unwrap(), &other.unwrap()), "one walk");
    stop.cancel();
}
