//! What is told of volumes.

use super::*;
use crate::pods::context::testing::bare;
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn memory_is_told_as_its_mount_counts_it() {
    let scratch = tempfile::tempdir().unwrap();
    let stop = CancellationToken::new();
    let context = bare(scratch.path(), &stop);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "u" },
        "spec": { "containers": [], "volumes": [
            { "name": "fast", "emptyDir": { "medium": "Memory", "sizeLimit": "8Mi" } },
        ] },
    }))
    .unwrap();
    let directory = context.pod_directory(&pod);
    let volume = &spec(&pod).volumes.as_ref().unwrap()[0];
    let path = volumes::path(&directory, &Kept::default(), volume).unwrap();
    let contents = volumes::content::Contents::default();
    volumes::set_up(&directory, &pod, &contents, context.clock.now()).unwrap();
    std::fs::write(path.join("file"), vec![1; 100_000]).unwrap();
    let (kept, now) = (PodDisk::default(), context.clock.now());
    let found = super::volumes(&context, directory.clone(), &pod, &kept, now).await;
    volumes::clear(&directory).unwrap();
    let fs = &found[0].fs;
    assert_eq!(fs.capacity_bytes, Some(8 << 20));
    assert_eq!(fs.inodes_used, Some(2), "the top and the file");
    let used = fs.used_bytes.unwrap();
    assert!((100_000..200_000).contains(&used), "{used}");
    stop.cancel();
}
