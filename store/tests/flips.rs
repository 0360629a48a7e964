//! A bit of any file is another: the store is refused, or holds all that it held.

#![allow(clippy::unwrap_used)]

use coracle_store::{Change, Config, Durability, Expect, Stamped, Store, Write};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PARTITION: &str = "things";
/// `CORACLE_FLIPS=5000` flips as many.
const FLIPS: usize = 60;

fn write(key: u64, serial: u64) -> Write {
    // One is too large for the log: it has a file of its own.
    let length = if key == 7 {
        1_000_000
    } else {
        100 + 40 * serial
    };
    Write {
        partition: PARTITION.into(),
        key: format!("k{key}").into(),
        change: Change::Put(Stamped {
            value: vec![b'a' + (serial % 26) as u8; length as usize],
            revision_at: None,
        }),
        expect: Expect::Any,
        durability: Durability::Synced,
    }
}

type Held = BTreeMap<String, (u64, Vec<u8>)>;

fn held(store: &Store) -> Held {
    let snapshot = store.snapshot(PARTITION);
    let entries = snapshot.iter();
    let one = |(key, entry): (&std::sync::Arc<str>, &coracle_store::Entry)| {
        (key.to_string(), (entry.modified.0, entry.value.to_vec()))
    };
    entries.map(one).collect()
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.metadata().unwrap() {
            metadata if metadata.is_dir() => files(&entry.path(), found),
            metadata if metadata.len() > 0 => found.push(entry.path()),
            _ => {}
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.metadata().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[allow(clippy::disallowed_methods)] // Only tests read it.
fn flips() -> usize {
    std::env::var("CORACLE_FLIPS").map_or(FLIPS, |text| text.parse().unwrap())
}

#[tokio::test]
async fn a_bit_that_is_another_is_never_believed() {
    let scratch = tempfile::tempdir().unwrap();
    let sound = scratch.path().join("sound");
    let store = Store::open(Config::new(&sound)).unwrap();
    for serial in 0..8 {
        for key in 0..8 {
            store.commit(write(key, serial)).await.unwrap();
        }
    }
    let expected = held(&store);
    store.close().await;
    let mut random = StdRng::seed_from_u64(3);
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..flips() {
        let directory = scratch.path().join(format!("flip-{round}"));
        copy(&sound, &directory);
        let mut all = Vec::new();
        files(&directory, &mut all);
        all.sort();
        let file = &all[round % all.len()];
        let mut bytes = std::fs::read(file).unwrap();
        // Where something is written: the rest of a segment is zeros.
        let written: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        let place = written[random.random_range(0..written.len())];
        bytes[place] ^= 1 << random.random_range(0..8);
        std::fs::write(file, bytes).unwrap();
        let name = file.strip_prefix(&directory).unwrap().display().to_string();
        match Store::open(Config::new(&directory)) {
            Err(error) => {
                *refused.entry(name).or_default() += 1;
                let told = error.to_string();
                assert!(told.contains(&directory.display().to_string()), "{told}");
            }
            Ok(store) => {
                assert!(held(&store) == expected, "{name}, byte {place}: believed");
                store.close().await;
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
    assert!(refused["database/db"] > 0, "{refused:?}");
}
