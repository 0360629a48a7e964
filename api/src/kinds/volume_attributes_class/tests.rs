//! A VolumeAttributesClass has parameters, and never changes.

use crate::kinds::testing::{check_errors, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::json;

#[test]
fn has_a_driver_and_parameters_that_stay() {
    let name = json!({ "name": "a" });
    check_errors(
        "volumeattributesclasses",
        json!({ "metadata": name }),
        expect![[r#"
        driverName: Required value
        parameters: Required value: must contain at least one key/value pair"#]],
    );
    let old = json!({ "metadata": name, "driverName": "a", "parameters": { "iops": "1" } });
    let new = json!({ "metadata": name, "driverName": "b", "parameters": { "iops": "2" } });
    update_errors(
        "volumeattributesclasses",
        new,
        old,
        Part::Main,
        expect![[r#"
        driverName: Forbidden: updates to driverName are forbidden.
        parameters: Forbidden: updates to parameters are forbidden."#]],
    );
}
