//! Layers of an image, one upon the other, parted by a byte that headers of tar have not: whatever
//! they say, nothing beside their own directory is written, linked or changed.
#![no_main]
#![allow(dead_code)]

mod unpack; // The agent's own, by a link.

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use unpack::unpack;

const BLOCK_BYTES: usize = 512;
const LAYERS_MAX: usize = 3;

/// Whole blocks: a tool that mutates bytes would seldom meet their borders, nor the sums in them.
fn stream(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in data
        .split(|byte| *byte == 0xfe)
        .filter(|entry| entry.len() > 2)
    {
        let (kind, rest) = (entry[0], &entry[1..]);
        let mut parts = rest.splitn(3, |byte| *byte == 0xfd);
        let name = parts.next().unwrap_or_default();
        let link = parts.next().unwrap_or_default();
        let body = parts.next().unwrap_or_default();
        let mut header = tar_header(kind, name, link, body.len());
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(body);
        out.resize(out.len().next_multiple_of(BLOCK_BYTES), 0);
    }
    out.resize(out.len() + 2 * BLOCK_BYTES, 0);
    out
}

fn tar_header(kind: u8, name: &[u8], link: &[u8], size: usize) -> [u8; BLOCK_BYTES] {
    let mut header = [0; BLOCK_BYTES];
    let mut put = |at: usize, room: usize, bytes: &[u8]| {
        let length = bytes.len().min(room);
        header[at..at + length].copy_from_slice(&bytes[..length]);
    };
    put(0, 100, name);
    put(100, 8, b"0000755\0");
    put(108, 8, b"0000000\0");
    put(116, 8, b"0000000\0");
    put(124, 12, format!("{size:011o}\0").as_bytes());
    put(136, 12, b"00000000001\0");
    put(148, 8, b"        ");
    put(156, 1, &[kind]);
    put(157, 100, link);
    put(257, 8, b"ustar\x0000");
    // Of devices.
    put(329, 8, b"0000000\0");
    put(
        337,
        8,
        if kind == b'3' && size == 0 {
            b"0000003\0"
        } else {
            b"0000000\0"
        },
    );
    header
}

fuzz_target!(|data: &[u8]| {
    let Some((is_raw, data)) = data.split_first() else {
        return;
    };
    // In memory where there is such a place: each input makes files.
    let place = std::path::Path::new("/dev/shm");
    let home = match place.is_dir() {
        true => tempfile::tempdir_in(place),
        false => tempfile::tempdir(),
    };
    let home = home.expect("a directory can be made");
    let canary = home.path().join("canary");
    fs::write(&canary, "sings").expect("it can be written");
    fs::create_dir(home.path().join("etc")).expect("it can be made");
    let before = fs::metadata(&canary).expect("it was made");
    let mut lowers: Vec<PathBuf> = Vec::new();
    for (number, layer) in data
        .split(|byte| *byte == 0xff)
        .take(LAYERS_MAX)
        .enumerate()
    {
        let root = home.path().join(number.to_string());
        fs::create_dir(&root).expect("it can be made");
        let bytes = match is_raw % 4 {
            0 => layer.to_vec(),
            _ => stream(layer),
        };
        let unpacked = unpack(bytes.as_slice(), &root, &lowers);
        lowers.insert(0, root);
        if unpacked.is_err() {
            break;
        }
    }
    let after = fs::metadata(&canary).expect("it still is there");
    let facts = |found: &fs::Metadata| (found.ino(), found.nlink(), found.mode(), found.uid());
    assert_eq!(facts(&before), facts(&after));
    assert_eq!(fs::read(&canary).expect("it can be read"), b"sings");
    let count = |path: PathBuf| fs::read_dir(path).expect("it is a directory").count();
    assert_eq!(count(home.path().to_owned()), 2 + lowers.len());
    assert_eq!(count(home.path().join("etc")), 0);
});
