//! The objects that every server has are themselves valid, and their specs complete.

use super::*;
use crate::catalogue;

#[test]
fn the_facts_are_valid_and_complete() {
    assert_eq!(bootstrap().len(), 19);
    assert_eq!(bootstrap().iter().filter(|one| one.is_mandatory).count(), 4);
    for Bootstrap { object, .. } in bootstrap() {
        let row = catalogue::by_kind(GROUP, "v1", object.kind()).unwrap();
        let mut defaulted = object.clone();
        row.rules.default(&mut defaulted);
        assert_eq!(defaulted.get(&["spec"]), object.get(&["spec"]));
        assert_eq!(row.rules.validate_create(object), []);
    }
}
