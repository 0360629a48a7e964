//! The store: names, sharing, holders, and what a crash leaves.

use super::*;
use crate::images::archive::tests::{Sample, file_layer};

fn store() -> (tempfile::TempDir, ImageStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = ImageStore::open(&directory.path().join("images")).unwrap();
    (directory, store)
}

fn import(directory: &Path, store: &ImageStore, sample: &Sample) -> ImageInfo {
    let path = directory.join("archive.tar");
    fs::write(&path, sample.docker()).unwrap();
    store.import(&path).unwrap().remove(0)
}

fn count(directory: &Path, part: &str) -> usize {
    fs::read_dir(directory.join("images").join(part))
        .unwrap()
        .count()
}

#[test]
fn images_are_found_by_name_digest_and_id() {
    let (directory, store) = store();
    let image = import(directory.path(), &store, &Sample::new("app:1", &["a"]));
    assert!(image.imported);
    for name in [
        "app:1",
        "docker.io/library/app:1",
        &image.id,
        digest::digits(&image.id),
    ] {
        assert_eq!(store.find(name).unwrap().as_ref(), Some(&image), "{name}");
    }
    assert_eq!(store.find("app:2").unwrap(), None);
    // A second handle, as the command line has it, sees the same.
    let other = ImageStore::open(&directory.path().join("images")).unwrap();
    assert_eq!(other.list().unwrap(), [image]);
}

#[test]
fn an_image_is_pinned_until_it_is_not() {
    let (directory, store) = store();
    let image = import(directory.path(), &store, &Sample::new("app:1", &["a"]));
    let is_pinned = || store.find("app:1").unwrap().unwrap().pinned;
    assert!(!is_pinned());
    store.pin("app:1", true).unwrap();
    assert!(is_pinned());
    // Imported again it is the same image, and stays so.
    import(directory.path(), &store, &Sample::new("app:1", &["a"]));
    assert!(is_pinned());
    store.pin(&image.id, false).unwrap();
    assert!(!is_pinned());
    let missing = store.pin("app:2", true).unwrap_err().to_string();
    assert!(missing.contains("is not present"), "{missing}");
}

#[test]
fn a_name_moves_and_shared_layers_are_kept_once() {
    let (directory, store) = store();
    let old = import(
        directory.path(),
        &store,
        &Sample::new("app:1", &["base", "one"]),
    );
    let new = import(
        directory.path(),
        &store,
        &Sample::new("app:1", &["base", "two"]),
    );
    assert_eq!(count(directory.path(), "layers"), 3);
    assert_eq!(store.find("app:1").unwrap().unwrap().id, new.id);
    assert!(store.find(&old.id).unwrap().unwrap().names.is_empty());
    store.remove_image(&old.id).unwrap();
    assert_eq!(count(directory.path(), "layers"), 2);
    store.remove("app:1").unwrap();
    assert_eq!(count(directory.path(), "layers"), 0);
    assert_eq!(count(directory.path(), "blobs/sha256"), 0);
    assert!(matches!(
        store.remove("app:1"),
        Err(ImageError::NotPresent(_))
    ));
}

#[test]
fn layers_stay_while_a_container_stands_on_them() {
    let (directory, store) = store();
    import(
        directory.path(),
        &store,
        &Sample::new("app:1", &["base", "top"]),
    );
    let held = store.hold(&["app:1"], "container").unwrap().remove(0);
    assert_eq!(held.layers.len(), 2);
    assert!(held.layers[0].join("top").exists() && held.layers[1].join("base").exists());
    store.remove("app:1").unwrap();
    assert!(held.layers[0].join("top").exists());
    store.release("container").unwrap();
    store.release("container").unwrap();
    assert_eq!(count(directory.path(), "layers"), 0);
    assert!(matches!(
        store.hold(&["app:1"], "other"),
        Err(ImageError::NotPresent(_))
    ));
}

#[test]
fn what_a_crash_left_is_cleaned_at_open_and_what_lives_is_not() {
    let (directory, store) = store();
    let session = store.session().unwrap();
    let layer = session.new_layer(&"0".repeat(64)).unwrap();
    let dead = directory.path().join("images/work/dead/layers/half");
    fs::create_dir_all(&dead).unwrap();
    fs::write(directory.path().join("images/work/dead/lock"), "").unwrap();
    ImageStore::open(&directory.path().join("images")).unwrap();
    assert!(layer.exists() && !dead.exists());
    drop(session);
    assert_eq!(count(directory.path(), "work"), 0);
}

#[test]
fn an_index_of_another_version_is_refused_by_name() {
    let (directory, store) = store();
    fs::write(
        directory.path().join("images/index.json"),
        r#"{"version":9,"images":{}}"#,
    )
    .unwrap();
    let error = store.list().unwrap_err().to_string();
    assert!(
        error.contains("index.json") && error.contains("version 9"),
        "{error}"
    );
}

#[test]
fn many_layers_come_in_order() {
    let (directory, store) = store();
    let names: Vec<String> = (0..130).map(|n| format!("file{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    import(directory.path(), &store, &Sample::new("deep:1", &names));
    let held = store.hold(&["deep:1"], "c").unwrap().remove(0);
    assert!(held.layers[0].join("file129").exists() && held.layers[129].join("file0").exists());
    assert_eq!(
        file_layer("x"),
        file_layer("x"),
        "samples are the same each time"
    );
}
