//! A schema of a custom resource and a value: what pruning leaves is known, what defaults fill in
//! stays, and validation of either ends.
#![no_main]

use coracle_api::field::Path;
use coracle_api::structural::{Patterns, Validator, check_lists, fill_defaults, prune, pruned};
use coracle_fuzz::halves;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((schema, value)) = halves(data) else {
        return;
    };
    let (Ok(schema), Ok(value)) = (
        serde_json::from_slice::<Value>(schema),
        serde_json::from_slice::<Value>(value),
    ) else {
        return;
    };
    let patterns = Patterns::default();
    let validator = Validator::new(&schema, &patterns);
    for is_resource in [false, true] {
        let mut known = pruned(&value, &schema, is_resource);
        assert_eq!(prune(&mut known, &schema, is_resource), [""; 0], "{known}");
        fill_defaults(&mut known, &schema);
        let mut again = known.clone();
        fill_defaults(&mut again, &schema);
        assert_eq!(again, known);
        let root = Path::root("spec");
        let _ = (
            check_lists(&known, &schema, &root),
            validator.validate(&known, &root),
        );
        // What is as it was is not told of.
        let told = validator.validate_update(&known, &known, &root);
        assert!(told.is_empty(), "{told:?}");
    }
});
