//! Networks of a ServiceCIDR: one a family, and they stay.

use crate::kinds::testing::{check_errors, check_row, update_errors};
use crate::resource::Part;
use expect_test::expect;
use serde_json::{Value, json};

fn cidr(cidrs: &[&str]) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": { "name": "more", "creationTimestamp": "1970-01-01T00:00:00Z" },
        "spec": { "cidrs": cidrs },
    })
}

#[test]
fn one_network_a_family() {
    for (cidrs, expected) in [
        (
            &[][..],
            expect!["spec.cidrs: Required value: at least one CIDR required"],
        ),
        (
            &["10.0.0.1/24"],
            expect![[
                r#"spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set beyond the prefix length"#
            ]],
        ),
        (
            &["fd00:0::/64"],
            expect![[
                r#"spec.cidrs[0]: Invalid value: "fd00:0::/64": must be in canonical form ("fd00::/64")"#
            ]],
        ),
        (
            &["10.0.0.0/24", "10.1.0.0/24"],
            expect![[
                r#"spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"#
            ]],
        ),
        (
            &["10.0.0.0/24", "fd00::/64", "10.1.0.0/24"],
            expect![[
                r#"spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","fd00::/64","10.1.0.0/24"]}: may only hold up to 2 values"#
            ]],
        ),
        (&["10.0.0.0/24", "fd00::/64"], expect![[""]]),
    ] {
        check_errors("servicecidrs", cidr(cidrs), expected);
    }
}

#[test]
fn a_second_family_may_be_added() {
    let old = || cidr(&["10.0.0.0/24"]);
    let more = cidr(&["10.0.0.0/24", "fd00::/64"]);
    update_errors("servicecidrs", more, old(), Part::Main, expect![[""]]);
    let other = cidr(&["10.1.0.0/24"]);
    update_errors(
        "servicecidrs",
        other,
        old(),
        Part::Main,
        expect![[r#"spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable"#]],
    );
    let none = cidr(&[]);
    update_errors(
        "servicecidrs",
        none,
        old(),
        Part::Main,
        expect!["spec.cidrs: Invalid value: []: field is immutable"],
    );
}

#[test]
fn printed() {
    let both = cidr(&["10.0.0.0/24", "fd00::/64"]);
    check_row(
        "servicecidrs",
        both,
        200,
        expect![[r#"
        Name: more
        CIDRs: 10.0.0.0/24,fd00::/64
        Age: 3m20s"#]],
    );
}
