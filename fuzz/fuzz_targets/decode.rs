//! A body of any kind, decoded in each of the three modes.
//!
//! The modes agree on what is decoded, what is decoded decodes to itself without a warning, and a
//! document that was parsed before comes out the same.
#![no_main]

use coracle_api::decode::{FieldValidation, conform, decode, type_meta};
use coracle_fuzz::{assert_bounded, bytes, kind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = kind(data) else {
        return;
    };
    let _ = type_meta(body);
    let ignored = decode(body, kind.schema, FieldValidation::Ignore);
    let warned = decode(body, kind.schema, FieldValidation::Warn);
    let strict = decode(body, kind.schema, FieldValidation::Strict);
    let (Ok(ignored), Ok(warned)) = (&ignored, &warned) else {
        assert_eq!(ignored.as_ref().err(), warned.as_ref().err());
        let error = strict.expect_err("a mode takes what stricter ones take");
        let _ = error.message(kind.kind, kind.version, body);
        return;
    };
    assert_eq!(ignored.object, warned.object);
    match strict {
        Ok(strict) => {
            assert_eq!(strict.object, warned.object);
            assert!(warned.warnings.is_empty());
        }
        Err(error) => {
            assert!(!warned.warnings.is_empty());
            let _ = error.message(kind.kind, kind.version, body);
        }
    }
    let mut value = ignored.object.to_value();
    let text = bytes(&value);
    assert_bounded(text.len(), body.len());
    let again = decode(&text, kind.schema, FieldValidation::Strict).expect("it was decoded");
    assert_eq!(again.object, ignored.object);
    let warnings = conform(&mut value, kind.schema, FieldValidation::Warn).expect("it conforms");
    assert!(warnings.is_empty());
    assert_eq!(value, again.object.into_value());
});
