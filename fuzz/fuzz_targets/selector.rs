//! The texts of label and field selectors: what is parsed prints as itself, and picks the same.
#![no_main]

use coracle_api::selector::{FieldSelector, LabelSelector};
use libfuzzer_sys::fuzz_target;

const LABELS: [(&str, &str); 4] = [("a", "b"), ("app", "web"), ("n", "7"), ("x/y", "")];

fuzz_target!(|text: &str| {
    if let Ok(selector) = LabelSelector::parse(text) {
        let printed = selector.to_string();
        let again = LabelSelector::parse(&printed).expect("it was printed");
        assert_eq!(again.to_string(), printed);
        let picks = |selector: &LabelSelector| {
            selector.matches_with(|key| LABELS.iter().find(|one| one.0 == key).map(|one| one.1))
        };
        assert_eq!(picks(&again), picks(&selector), "{text:?} as {printed:?}");
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let _ = selector.check_fields(&["spec.nodeName"]);
        let is_any = selector.requirements.is_empty();
        assert!(!is_any || selector.matches(|_| String::new()));
    }
});
