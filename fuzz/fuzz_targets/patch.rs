//! A document of any kind and a patch of each of the three types.
//!
//! A patch of one type may fail; what it makes is bounded, and a merge patch says what the document
//! is to be, so that it changes nothing the second time.
#![no_main]

use coracle_api::decode::{FieldValidation, conform, decode};
use coracle_api::patch::{json_patch, merge_patch, strategic_merge_patch};
use coracle_fuzz::{assert_bounded, bytes, halves, kind};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// What copies of a JSON patch may add, and what it holds itself.
const COPIES_BYTES_MAX: usize = 4 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = kind(data) else {
        return;
    };
    let Some((document, patch)) = halves(rest) else {
        return;
    };
    let Ok(document) = decode(document, kind.schema, FieldValidation::Ignore) else {
        return;
    };
    let document = document.object.into_value();
    let given = data.len();
    if let Ok(mut patched) = json_patch(&document, patch) {
        let made = bytes(&patched).len();
        assert!(
            made <= 32 * given + COPIES_BYTES_MAX,
            "{given} bytes became {made}"
        );
        let _ = conform(&mut patched, kind.schema, FieldValidation::Warn);
    }
    let Ok(patch) = serde_json::from_slice::<Value>(patch) else {
        return;
    };
    if let Ok(merged) = merge_patch(&document, &patch) {
        assert_bounded(bytes(&merged).len(), given);
        assert_eq!(merge_patch(&merged, &patch).as_ref(), Ok(&merged));
    }
    if let Ok(mut merged) = strategic_merge_patch(&document, &patch, kind.schema) {
        assert_bounded(bytes(&merged).len(), given);
        let _ = conform(&mut merged, kind.schema, FieldValidation::Strict);
    }
    let nothing = strategic_merge_patch(&document, &json!({}), kind.schema);
    assert_eq!(nothing, Ok(document));
});
