//! What is printed of a part of the control plane.

use super::of;
use crate::kinds::testing::check_row;
use expect_test::expect;

#[test]
fn printed() {
    let good = of("scheduler", Ok("ok")).into_value();
    check_row(
        "componentstatuses",
        good,
        0,
        expect![[r#"
        Name: scheduler
        Status: Healthy
        Message: ok
        Error: "#]],
    );
    let bad = of("scheduler", Err("nobody leads")).into_value();
    check_row(
        "componentstatuses",
        bad,
        0,
        expect![[r#"
        Name: scheduler
        Status: Unhealthy
        Message: nobody leads
        Error: "#]],
    );
}
