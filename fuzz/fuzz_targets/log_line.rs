//! What a container says becomes lines of its log, however it is cut, and is read back whole;
//! lines of any bytes are read without trouble.
#![no_main]
#![allow(dead_code)]

#[path = "../../agent/src/stream/logs/line.rs"]
mod line;
#[path = "../../agent/src/runtime/shim/log.rs"]
mod log;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

/// The first byte says in which pieces the rest arrives: long ones come to the longest line.
const REPEATS_MAX: usize = 40;

fn read_back(log: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for raw in log.split_inclusive(|byte| *byte == b'\n') {
        let raw = raw.strip_suffix(b"\n").expect("each line has its end");
        let line = line::parse(raw).expect("a line of our own");
        assert_eq!(line.stream, b"stdout");
        assert_eq!(line.timestamp(), Some(Timestamp::UNIX_EPOCH));
        assert!(line.content.len() <= log::LINE_BYTES_MAX);
        text.extend_from_slice(line.content);
        if !line.is_partial {
            text.push(b'\n');
        }
    }
    text
}

fuzz_target!(|data: &[u8]| {
    for raw in data.split(|byte| *byte == b'\n') {
        if let Some(line) = line::parse(raw) {
            let _ = line.timestamp();
            assert!(line.content.len() < raw.len());
        }
    }
    let Some((first, said)) = data.split_first() else {
        return;
    };
    let repeats = usize::from(*first) % REPEATS_MAX + 1;
    let said = said.repeat(repeats);
    let mut lines = log::Lines::of("stdout");
    let mut written = Vec::new();
    for piece in said.chunks(usize::from(*first) * 64 + 1) {
        lines.push(piece, Timestamp::UNIX_EPOCH, &mut written);
    }
    lines.finish(Timestamp::UNIX_EPOCH, &mut written);
    assert!(read_back(&written) == said, "{said:?}");
});
