//! A whole file is read as it was written; one that is not whole is refused.

use super::*;
use crate::snapshots::SealingKey;
use crate::snapshots::key_files::tests::{files, site};
use coracle_store::{Change, Config, Durability, Expect, Stamped, Store, Write as StoreWrite};

async fn store(directory: &Path) -> Store {
    let store = Store::open(Config::new(directory)).unwrap();
    for key in ["default/a", "default/b"] {
        let write = StoreWrite {
            partition: "/configmaps".into(),
            key: key.into(),
            change: Change::Put(Stamped {
                value: b"{}".to_vec(),
                revision_at: None,
            }),
            expect: Expect::Any,
            durability: Durability::Synced,
        };
        store.commit(write).await.unwrap();
    }
    store
}

async fn snapshot(header: &Header) -> (Vec<u8>, String) {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path()).await;
    let frozen = store.freeze().await.unwrap();
    store.close().await;
    let mut bytes = Vec::new();
    let sum = write(&mut bytes, header, &frozen).unwrap();
    (bytes, sum)
}

fn plain() -> Header {
    Header {
        created: "2026-06-01T00:00:00Z".to_owned(),
        version: "1".to_owned(),
        ca: None,
        keys: None,
    }
}

#[tokio::test]
async fn what_was_written_is_verified_and_read() {
    let site = site();
    let keys = SealingKey::of_test("correct horse battery");
    let header = Header {
        keys: Some(keys.seal(&files(&site))),
        ca: Some(files(&site).ca_fingerprint().unwrap()),
        ..plain()
    };
    let (bytes, sum) = snapshot(&header).await;
    let verified = check(bytes.as_slice()).unwrap();
    assert_eq!(verified.header, Some(header));
    assert_eq!((verified.facts.entries, verified.facts.sealed), (2, 0));
    assert_eq!((verified.sha256, verified.bytes), (sum, bytes.len() as u64));
    let file = site.path().join("file");
    std::fs::write(&file, &bytes).unwrap();
    let seal = files(&site).seal().unwrap();
    let contents = objects(&file, seal).unwrap();
    assert_eq!(contents.revision, verified.facts.revision);
    let opened = verified.header.unwrap().keys.unwrap();
    assert!(opened.open("correct horse battery").unwrap() == files(&site));
}

#[tokio::test]
async fn any_bit_that_flips_and_any_end_that_is_missing_is_told() {
    let (bytes, _) = snapshot(&plain()).await;
    for place in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[place / 8] ^= 1 << (place % 8);
        let checked = check(flipped.as_slice());
        assert!(
            matches!(checked, Err(SnapshotFileError::Damaged(_))),
            "{place}"
        );
    }
    for length in 0..bytes.len() {
        assert!(check(&bytes[..length]).is_err(), "{length}");
    }
    let longer = [bytes.as_slice(), b"x"].concat();
    let told = check(longer.as_slice()).unwrap_err().to_string();
    assert_eq!(told, "something follows its end");
    for other in [&b""[..], b"something else altogether, of some length"] {
        assert!(check(other).is_err());
    }
}

#[tokio::test]
async fn a_file_of_the_ring_is_one_without_a_header() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path()).await;
    let file = store.write_snapshot().await.unwrap();
    store.close().await;
    let verified = verify(&file).unwrap();
    assert_eq!((verified.header, verified.facts.entries), (None, 2));
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let told = verify(&file).unwrap_err().to_string();
    let expected = format!(
        "the snapshot {} is damaged: its checksum is wrong",
        file.display()
    );
    assert_eq!(told, expected);
}
