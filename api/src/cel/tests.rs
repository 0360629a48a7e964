//! What can be read, and what cannot.

use super::*;
use expect_test::expect;

fn check(text: &str, declared: &[&str]) -> String {
    match Expression::parse(text).and_then(|expression| expression.undeclared(declared)) {
        Ok(()) => "good".to_owned(),
        Err(error) => error,
    }
}

#[test]
fn expressions_of_upstream_are_read() {
    for text in [
        "device.driver == 'a'",
        "device.capacity['x'].mem.compareTo(quantity('1Gi')) >= 0",
        "device.attributes['a'].?b.orValue('x') == 'x' || has(device.a)",
        "device.list.exists(x, x > 1) && device.list[?0].hasValue()",
        "cel.bind(x, device.driver, x == 'a')",
        "type(device.driver) == string",
        "{'a': device.driver}['a'] in ['b'] // why",
    ] {
        assert_eq!(check(text, &["device"]), "good", "{text}");
    }
}

#[test]
fn errors_point_into_the_source() {
    expect![[r#"
        ERROR: <input>:1:17: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
         | device.driver ==
         | ................^"#]]
    .assert_eq(&check("device.driver ==", &["device"]));
    expect![[r#"
        ERROR: <input>:1:13: undeclared reference to 'driver' (in container '')
         | 'a' == 1 || driver
         | ............^"#]]
    .assert_eq(&check("'a' == 1 || driver", &["device"]));
}

#[test]
fn a_literal_has_a_type() {
    let of = |text: &str| Expression::parse(text).unwrap().plain_type();
    assert_eq!(of("1"), Some("int"));
    assert_eq!(of("true"), Some("bool"));
    assert_eq!(of("device.x"), None);
}
