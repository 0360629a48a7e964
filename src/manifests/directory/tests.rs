//! Which files count, and that their changes are told.

use super::*;

fn names(directory: &mut Directory) -> Option<Vec<String>> {
    match directory.read() {
        Seen::Missing => None,
        Seen::Files(files) => Some(files.into_iter().map(|file| file.name).collect()),
        Seen::Unreadable => panic!("cannot be read"),
    }
}

#[tokio::test]
async fn a_directory_that_is_missing_is_told_from_an_empty_one() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("manifests");
    let mut directory = Directory::new(&path);
    assert_eq!(names(&mut directory), None);
    directory.watch();
    fs::create_dir(&path).unwrap();
    directory.changed().await;
    assert_eq!(names(&mut directory), Some(Vec::new()));
    directory.watch();
    fs::write(path.join("a.yaml"), "a").unwrap();
    directory.changed().await;
    assert_eq!(names(&mut directory), Some(vec!["a.yaml".to_owned()]));
}

#[tokio::test]
async fn only_plain_files_with_an_ending_of_manifests_are_read() {
    let scratch = tempfile::tempdir().unwrap();
    for name in [
        "b.yml", "a.yaml", "c.json", ".d.yaml", "e.yaml~", "f.txt", "g",
    ] {
        fs::write(scratch.path().join(name), name).unwrap();
    }
    fs::create_dir(scratch.path().join("h.yaml")).unwrap();
    fs::write(scratch.path().join("i.yaml"), [0xff]).unwrap();
    let mut directory = Directory::new(scratch.path());
    let Seen::Files(files) = directory.read() else {
        panic!("not read");
    };
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["a.yaml", "b.yml", "c.json", "i.yaml"]);
    assert_eq!(files[0].text, Ok("a.yaml".to_owned()));
    assert!(files[3].text.is_err(), "no text");
}

#[test]
fn a_file_is_young_for_a_moment() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.yaml");
    fs::write(&path, "a").unwrap();
    let old = fs::File::options().write(true).open(&path).unwrap();
    let hour = Duration::from_secs(3600);
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    old.set_modified(written - hour).unwrap();
    assert!(!file(&path).unwrap().is_young);
    old.set_modified(written + hour).unwrap();
    assert!(!file(&path).unwrap().is_young, "a clock that was set back");
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_not_gone() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("manifests");
    fs::write(&path, "no directory").unwrap();
    let mut directory = Directory::new(&path);
    assert!(matches!(directory.read(), Seen::Unreadable));
    fs::remove_file(&path).unwrap();
    assert!(matches!(directory.read(), Seen::Missing));
    fs::create_dir(&path).unwrap();
    std::os::unix::fs::symlink(scratch.path().join("away"), path.join("a.yaml")).unwrap();
    let Seen::Files(files) = directory.read() else {
        panic!("not read");
    };
    let why = files[0].text.as_ref().unwrap_err();
    assert!(why.starts_with("cannot be read: "), "{why}");
}
