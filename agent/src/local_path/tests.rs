//! Directories of volumes: what is made, and above all what is not removed.

use super::*;
use serde_json::json;
use std::os::unix::fs::symlink;

fn volume(name: &str, path: &str, by: &str) -> PersistentVolume {
    let meta = json!({"name": name, "annotations": {PROVISIONED_BY: by}});
    serde_json::from_value(json!({"metadata": meta, "spec": {"local": {"path": path}}})).unwrap()
}

#[test]
fn only_volumes_that_were_made_here_have_a_place() {
    let all = Some(Path::new("/srv/volumes"));
    let own = volume("pvc-1", "/srv/volumes/pvc-1", LOCAL_PATH);
    assert_eq!(place(all, &own), Some("/srv/volumes/pvc-1".into()));
    assert_eq!(place(None, &own), None);
    for other in [
        volume("pvc-1", "/srv/volumes/pvc-2", LOCAL_PATH),
        volume("pvc-1", "/elsewhere/pvc-1", LOCAL_PATH),
        volume("pvc-1", "/srv/volumes/../volumes/pvc-1", LOCAL_PATH),
        volume("..", "/srv/volumes/..", LOCAL_PATH),
        volume("pvc-1", "/srv/volumes/pvc-1", "example.com/p"),
    ] {
        assert_eq!(place(all, &other), None, "{other:?}");
    }
}

#[test]
fn a_directory_is_made_for_all_users_and_only_once() {
    let base = tempfile::tempdir().unwrap();
    let place = base.path().join("volumes/pvc-1");
    make(&place).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&place), 0o777);
    assert_eq!(mode(place.parent().unwrap()), 0o700);
    fs::set_permissions(&place, fs::Permissions::from_mode(0o750)).unwrap();
    make(&place).unwrap();
    assert_eq!(mode(&place), 0o750);
}

#[test]
fn what_is_no_directory_of_this_node_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let (place, outside) = (base.path().join("pvc-1"), base.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    symlink(&outside, &place).unwrap();
    let refused = make(&place).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::NotADirectory);
    // What a start that was cut off left, with whatever mode, is no obstacle.
    let place = base.path().join("pvc-2");
    fs::create_dir(base.path().join(".pvc-2")).unwrap();
    make(&place).unwrap();
    let mode = fs::metadata(&place).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o777);
    assert!(!base.path().join(".pvc-2").exists());
    // A link in that place is another's.
    symlink(&outside, base.path().join(".pvc-3")).unwrap();
    assert!(make(&base.path().join("pvc-3")).is_err());
    assert_ne!(
        fs::metadata(&outside).unwrap().permissions().mode() & 0o7777,
        0o777
    );
}

#[test]
fn pods_that_share_a_volume_make_it_at_the_same_time() {
    let base = tempfile::tempdir().unwrap();
    for number in 0..100 {
        let place = base.path().join(format!("pvc-{number}"));
        std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| make(&place)));
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
        assert!(!base.path().join(format!(".pvc-{number}")).exists());
    }
}

#[test]
fn what_is_removed_is_the_directory_and_nothing_that_it_points_to() {
    let base = tempfile::tempdir().unwrap();
    let all = base.path().join("volumes");
    let (place, outside) = (all.join("pvc-1"), base.path().join("outside"));
    make(&place).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "kept").unwrap();
    fs::create_dir_all(place.join("deep/er")).unwrap();
    fs::write(place.join("deep/er/file"), "gone").unwrap();
    symlink(&outside, place.join("deep/link")).unwrap();
    symlink("../../outside", place.join("relative")).unwrap();
    remove(Some(&all), "pvc-1").unwrap();
    assert!(!place.exists());
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    // Again, and for one that never was.
    remove(Some(&all), "pvc-1").unwrap();
    remove(Some(&all), "pvc-2").unwrap();

    symlink(&outside, all.join("pvc-3")).unwrap();
    remove(Some(&all), "pvc-3").unwrap();
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    assert!(fs::symlink_metadata(all.join("pvc-3")).is_err());
}

#[test]
fn no_name_leads_elsewhere() {
    let base = tempfile::tempdir().unwrap();
    let all = base.path().join("volumes");
    fs::create_dir(&all).unwrap();
    fs::write(base.path().join("kept"), "kept").unwrap();
    for name in [
        "",
        ".",
        "..",
        "../kept",
        "a/b",
        "/etc",
        ".hidden",
        "a\0b",
        "A",
        "..%2fkept",
    ] {
        let refused = remove(Some(&all), name).unwrap_err();
        assert!(matches!(refused, RemoveError::Name(_)), "{name:?}");
    }
    assert!(matches!(
        remove(None, "pvc-1").unwrap_err(),
        RemoveError::NoPlace
    ));
    assert!(base.path().join("kept").exists() && all.exists());
}

#[test]
fn a_directory_with_something_mounted_below_it_stays() {
    use nix::mount::{MsFlags, mount, umount};
    let base = tempfile::tempdir().unwrap();
    let all = base.path().join("volumes");
    let below = all.join("pvc-1/below");
    fs::create_dir_all(&below).unwrap();
    let none = None::<&str>;
    if mount(Some("none"), &below, Some("tmpfs"), MsFlags::empty(), none).is_err() {
        return; // Only root may mount; the tests are run by root.
    }
    fs::write(below.join("kept"), "kept").unwrap();
    let refused = remove(Some(&all), "pvc-1").unwrap_err();
    let kept = fs::read_to_string(below.join("kept"));
    umount(&below).unwrap();
    assert!(matches!(refused, RemoveError::Mounted(_)), "{refused}");
    assert_eq!(kept.unwrap(), "kept");
    remove(Some(&all), "pvc-1").unwrap();
}
