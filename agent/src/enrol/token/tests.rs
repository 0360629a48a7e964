//! Which texts are tokens.

use super::parse_token;

const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn a_token_has_a_version_a_hash_an_id_and_a_secret() {
    let token = parse_token(&format!(" coracle1.{HASH}.abcdef.0123456789abcdef\n")).unwrap();
    assert_eq!(hex::encode(token.ca_hash), HASH);
    assert_eq!(token.bearer(), "abcdef.0123456789abcdef");
    assert!(!format!("{token:?}").contains("0123456789abcdef"));
}

#[test]
fn anything_else_is_none() {
    for text in [
        String::new(),
        "abcdef.0123456789abcdef".to_owned(),
        format!("coracle2.{HASH}.abcdef.0123456789abcdef"),
        format!("coracle1.{}.abcdef.0123456789abcdef", &HASH[2..]),
        format!("coracle1.{HASH}.abcdef.0123456789abcde"),
        format!("coracle1.{HASH}.ABCDEF.0123456789abcdef"),
        format!("coracle1.{HASH}.abcdef.0123456789abcdef.more"),
    ] {
        assert!(parse_token(&text).is_none(), "{text:?}");
    }
}
