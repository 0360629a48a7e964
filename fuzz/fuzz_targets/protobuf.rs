//! The bytes of a message of any kind: what is read can be written, and is then stable.
#![no_main]

use coracle_api::decode::{FieldValidation, conform};
use coracle_api::protobuf::{MAGIC, decode, decode_as, encode, knows};
use coracle_fuzz::{api_version, kind};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The message in the envelope of `runtime.Unknown`.
fn sealed(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    put(&mut meta, 1, api_version.as_bytes());
    put(&mut meta, 2, kind.as_bytes());
    let mut document = MAGIC.to_vec();
    put(&mut document, 1, &meta);
    put(&mut document, 2, message);
    document
}

fn put(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

fuzz_target!(|data: &[u8]| {
    if data.starts_with(MAGIC) {
        let _ = decode(data);
        return;
    }
    let Some((kind, message)) = kind(data) else {
        return;
    };
    if !knows(kind.schema) {
        return;
    }
    let document = sealed(&api_version(kind), kind.kind, message);
    let Ok((meta, mut value)) = decode_as(&document, kind.schema) else {
        return;
    };
    assert_eq!(meta.kind, kind.kind);
    let write = |value: &Value| encode(value, &meta.api_version, &meta.kind, kind.schema);
    let written = write(&value).expect("what was read can be written");
    let (_, read) = decode(&written).expect("what was written can be read");
    assert_eq!(write(&read).expect("and written again"), written);
    // In the usual form it is a JSON document like any other, where it is well typed at all.
    if conform(&mut value, kind.schema, FieldValidation::Ignore).is_ok() {
        let written = write(&value).expect("a document in the usual form can be written");
        let (_, mut read) = decode(&written).expect("what was written can be read");
        conform(&mut read, kind.schema, FieldValidation::Strict).expect("it did before");
        assert_eq!(read, value);
    }
});
