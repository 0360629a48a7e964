//! The link is made, found again and taken away; nothing of others is touched.

use super::{KubeletDir, link, unlink};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn the_link_leads_to_the_agents_directory_until_it_is_wiped() {
    let scratch = tempfile::tempdir().unwrap();
    let (root, path) = (
        scratch.path().join("agent"),
        scratch.path().join("lib/kubelet"),
    );
    let asked = KubeletDir::Asked(path.clone());
    for _ in 0..2 {
        assert_eq!(link(&root, &asked).unwrap(), path);
        assert_eq!(fs::canonicalize(&path).unwrap(), root);
    }
    unlink(&root).unwrap();
    unlink(&root).unwrap();
    assert!(fs::symlink_metadata(&path).is_err());
}

#[test]
fn what_others_have_there_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("agent");
    let full = scratch.path().join("full");
    fs::create_dir_all(full.join("pods")).unwrap();
    assert!(link(&root, &KubeletDir::Asked(full.clone())).is_err());
    assert!(full.join("pods").is_dir());
    let empty = scratch.path().join("empty");
    fs::create_dir(&empty).unwrap();
    link(&root, &KubeletDir::Asked(empty.clone())).unwrap();
    fs::remove_file(&empty).unwrap();
    symlink("/elsewhere", &empty).unwrap();
    assert!(link(&root, &KubeletDir::Asked(empty.clone())).is_err());
    unlink(&root).unwrap();
    assert!(empty.is_symlink());
}

#[test]
fn without_a_link_drivers_are_told_the_agents_own_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("agent");
    assert_eq!(link(&root, &KubeletDir::Own).unwrap(), root);
    assert_eq!(link(&root, &KubeletDir::Asked(root.clone())).unwrap(), root);
    assert!(!root.exists());
}
