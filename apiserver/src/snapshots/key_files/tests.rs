//! Files of keys on their way from one directory to another.

use super::*;
use crate::at_rest::AtRest;
use crate::pki::authority::Authority;
use tempfile::TempDir;

/// A data directory with the keys of a cluster.
pub fn site() -> TempDir {
    let site = tempfile::tempdir().unwrap();
    let pki = site.path().join("pki");
    let now = "2026-06-01T00:00:00Z".parse().unwrap();
    Authority::open(&pki, now).unwrap();
    Authority::open(&pki.join("front-proxy"), now).unwrap();
    std::fs::write(pki.join("sa.key"), "a key").unwrap();
    std::fs::write(pki.join(".coracle-x"), "half of a key").unwrap();
    let at_rest = AtRest::open(source(&site).at_rest.unwrap()).unwrap();
    at_rest.settle().unwrap();
    site
}

pub fn source(site: &TempDir) -> KeySource {
    KeySource {
        pki: site.path().join("pki"),
        at_rest: Some(at_rest::Settings {
            key_file: site.path().join("elsewhere.key"),
            configuration: None,
        }),
    }
}

pub fn files(site: &TempDir) -> KeyFiles {
    KeyFiles::gather(&source(site)).unwrap()
}

#[test]
fn all_that_is_needed_goes_with_a_snapshot_and_comes_back_private() {
    use std::os::unix::fs::PermissionsExt;
    let site = site();
    let files = files(&site);
    let names: Vec<&String> = files.0.keys().collect();
    let expected = [
        "ca.crt",
        "ca.key",
        "front-proxy/ca.crt",
        "front-proxy/ca.key",
        "sa.key",
        "secrets.key",
    ];
    assert_eq!(names, expected);
    assert!(!format!("{files:?}").contains("a key"));
    let read = KeyFiles::from_bytes(&files.to_bytes()).unwrap();
    assert!(read == files);
    let there = site.path().join("restored");
    assert!(!read.are_in(&there));
    read.write(&there).unwrap();
    assert!(read.are_in(&there));
    for name in expected {
        let mode = std::fs::metadata(there.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    for directory in ["", "front-proxy"] {
        let mode = std::fs::metadata(there.join(directory))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700, "{directory:?}");
    }
    let of_pki = ca_fingerprint(&there).unwrap();
    assert_eq!(of_pki, Some(read.ca_fingerprint().unwrap()));
    assert!(read.write(&there).is_err(), "never over what is there");
    std::fs::write(there.join("sa.key"), "another").unwrap();
    assert!(!read.are_in(&there));
}

#[test]
fn keys_that_are_not_whole_are_named_by_what_is_missing() {
    for name in ["pki/ca.crt", "pki/ca.key", "pki/sa.key", "elsewhere.key"] {
        let site = site();
        std::fs::remove_file(site.path().join(name)).unwrap();
        let refused = KeyFiles::gather(&source(&site)).unwrap_err().to_string();
        let told = name.rsplit('/').next().unwrap();
        let told = if name.contains('/') {
            told
        } else {
            "secrets.key"
        };
        assert!(refused.contains(&format!("{told} is missing")), "{refused}");
    }
    let site = site();
    std::fs::write(site.path().join("pki/large"), vec![0; 300_000]).unwrap();
    let refused = KeyFiles::gather(&source(&site)).unwrap_err().to_string();
    assert!(refused.contains("pki/large is more than"), "{refused}");
    assert_eq!(ca_fingerprint(&site.path().join("none")).unwrap(), None);
}

#[test]
fn no_name_leads_out_of_the_directory() {
    for name in ["a", "front-proxy/ca.key", "a b"] {
        assert!(is_name(name), "{name}");
    }
    for name in [
        "", "/a", "a/", "..", "../a", "a/../b", "a/..", ".a", "a/.b", "a/b/c", "a\0",
    ] {
        assert!(!is_name(name), "{name}");
    }
    let site = site();
    let mut files = files(&site);
    files.0.insert("../a".to_owned(), Vec::new());
    let refused = KeyFiles::from_bytes(&files.to_bytes()).unwrap_err();
    assert!(refused.to_string().contains(r#""../a" is no name"#));
}
