//! Files that come, change, break and go.

use super::Directory;
use std::fs;
use std::path::Path;

fn manifest(name: &str, image: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, \
         spec: {{containers: [{{name: c, image: '{image}'}}]}}}}"
    )
}

/// Names and images of what is described.
fn read(directory: &mut Directory) -> String {
    let pods = directory.read().unwrap();
    let line = |pod: &k8s_openapi::api::core::v1::Pod| {
        let image = pod.spec.as_ref().unwrap().containers[0].image.clone();
        format!(
            "{}={}",
            pod.metadata.name.as_deref().unwrap(),
            image.unwrap()
        )
    };
    pods.iter().map(line).collect::<Vec<_>>().join(" ")
}

/// As editors write: another file takes the name.
fn put(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join(".new"), text).unwrap();
    fs::rename(directory.join(".new"), directory.join(name)).unwrap();
}

#[test]
fn a_bad_file_harms_nobody() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("pods");
    let mut directory = Directory::new(&path, "n");
    assert_eq!(read(&mut directory), "");
    fs::create_dir(&path).unwrap();
    fs::create_dir(path.join("sub")).unwrap();
    put(&path, "a.yaml", &manifest("a", "i:1"));
    put(&path, "b.yaml", "nonsense: [");
    put(&path, ".hidden", &manifest("h", "i:1"));
    assert_eq!(read(&mut directory), "a-n=i:1");
    put(&path, "b.yaml", &manifest("b", "i:1"));
    put(&path, "a.yaml", &manifest("a", "i:2"));
    assert_eq!(read(&mut directory), "a-n=i:2 b-n=i:1");
    // What ran goes on until its file is good again, or gone.
    put(&path, "a.yaml", "kind: Pod");
    assert_eq!(read(&mut directory), "a-n=i:2 b-n=i:1");
    fs::remove_file(path.join("a.yaml")).unwrap();
    assert_eq!(read(&mut directory), "b-n=i:1");
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(read(&mut directory), "");
}

#[tokio::test]
async fn a_change_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let mut directory = Directory::new(scratch.path(), "n");
    {
        let changing = directory.changed();
        tokio::pin!(changing);
        let early = tokio::select! {
            biased;
            () = &mut changing => true,
            () = tokio::task::yield_now() => false,
        };
        assert!(!early);
        put(scratch.path(), "a.yaml", &manifest("a", "i:1"));
        changing.await;
    }
    assert_eq!(read(&mut directory), "a-n=i:1");
}
