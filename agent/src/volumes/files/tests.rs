//! All at once, with the kubelet's layout.

use super::*;
use crate::volumes::VolumeError;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn files(given: &[(&str, &str)]) -> Files {
    let files = given.iter();
    files
        .map(|(path, text)| ((*path).to_owned(), File::new(*text, 0o640)))
        .collect()
}

/// Names at the root with where links lead; the time of the data's directory is left out.
fn shown(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            match fs::read_link(entry.path()) {
                Ok(_) if name == DATA => format!("{name} -> ..time"),
                Ok(to) => format!("{name} -> {}", to.display()),
                Err(_) if name.starts_with("..") => "..time/".to_owned(),
                Err(_) => format!("{name}/"),
            }
        })
        .collect();
    names.sort();
    names
}

#[test]
fn files_are_links_into_one_directory_that_is_changed_as_a_whole() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let first = files(&[("a", "1"), ("d/e/f", "2"), ("d/g", "3")]);
    assert!(write(root, &first, None, at(0)).unwrap());
    let layout = [
        "..data -> ..time",
        "..time/",
        "a -> ..data/a",
        "d -> ..data/d",
    ];
    assert_eq!(shown(root), layout);
    assert_eq!(fs::read_to_string(root.join("d/e/f")).unwrap(), "2");
    let mode = |path: &str| fs::metadata(root.join(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode("a"), mode("d/e")), (0o640, 0o755));

    let before = fs::read_link(root.join(DATA)).unwrap();
    assert!(
        !write(root, &first, None, at(1)).unwrap(),
        "nothing changed"
    );
    assert_eq!(fs::read_link(root.join(DATA)).unwrap(), before);

    let second = files(&[("a", "other"), ("h", "4")]);
    assert!(write(root, &second, None, at(1)).unwrap());
    let layout = [
        "..data -> ..time",
        "..time/",
        "a -> ..data/a",
        "h -> ..data/h",
    ];
    assert_eq!(shown(root), layout);
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "other");
    assert!(write(root, &Files::new(), None, at(1)).unwrap());
    assert_eq!(shown(root), ["..data -> ..time", "..time/"]);
}

#[test]
fn what_a_broken_write_left_is_taken_away() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    fs::create_dir(root.join("..1970_01_01_00_00_00.0")).unwrap();
    symlink("nowhere", root.join(DATA_NEXT)).unwrap();
    fs::create_dir(root.join("mount-point")).unwrap();
    assert!(write(root, &files(&[("a", "1")]), None, at(0)).unwrap());
    let layout = [
        "..data -> ..time",
        "..time/",
        "a -> ..data/a",
        "mount-point/",
    ];
    assert_eq!(shown(root), layout);
    fs::write(root.join("a"), "torn").unwrap();
    assert!(write(root, &files(&[("a", "1")]), None, at(0)).unwrap());
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "1");
}

#[test]
fn a_write_that_fails_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    // A file cannot have another one in it.
    let bad = files(&[("a", "1"), ("a/b", "2")]);
    for second in 0..3 {
        assert!(write(root, &bad, None, at(second)).is_err());
        assert_eq!(shown(root), Vec::<String>::new());
    }
    let good = files(&[("a", "1")]);
    write(root, &good, None, at(3)).unwrap();
    let before = shown(root);
    assert!(write(root, &bad, None, at(4)).is_err());
    assert_eq!(shown(root), before);
}

#[test]
fn a_file_is_made_with_no_more_than_its_mode() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("token");
    let made = create(&path, 0o600).unwrap();
    assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_group_may_read_and_an_owner_has_it_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path();
    let mut token = File::new("t", 0o600);
    token.owner = Some(1000);
    let files = Files::from([("token".to_owned(), token)]);
    write(root, &files, Some(50), at(0)).unwrap();
    let meta = fs::metadata(root.join("token")).unwrap();
    assert_eq!(
        (meta.uid(), meta.gid(), meta.mode() & 0o7777),
        (1000, 50, 0o640)
    );
    let data = fs::metadata(root.join(DATA)).unwrap();
    assert_eq!((data.gid(), data.mode() & 0o7777), (50, 0o2755));
    assert!(
        !write(root, &files, Some(50), at(1)).unwrap(),
        "nothing changed"
    );
}

#[test]
fn no_file_is_out_of_its_volume() {
    let scratch = tempfile::tempdir().unwrap();
    for path in ["", "/etc/passwd", "../x", "a/../../x", "..data"] {
        let refused = write(scratch.path(), &files(&[(path, "x")]), None, at(0));
        assert!(matches!(refused, Err(VolumeError::FilePath(_))), "{path}");
    }
}
