//! Tokens are made, found, and end.

use super::*;
use crate::view::tests::Objects;

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

#[test]
fn a_generated_token_is_unlike_the_next_and_authenticates_until_it_ends() {
    let token = generate();
    assert!(bootstrap_token::parse(&token).is_some(), "{token}");
    assert_ne!(token, generate());
    let kept = secret(&token, "for n1", Some(Duration::from_secs(3600)), now());
    let view = Objects::new([("secrets", kept.to_value())]);
    let user = |at: &str| bootstrap_token::user(view.as_ref(), &token, at.parse().unwrap());
    let found = user("2026-06-01T00:59:59Z").unwrap();
    assert_eq!(found.groups, ["system:bootstrappers", GROUP]);
    assert!(user("2026-06-01T01:00:00Z").is_none());
    let info = TokenInfo::from_secret(&kept.to_value()).unwrap();
    assert_eq!(info.expires, "2026-06-01T01:00:00Z");
    assert_eq!(info.description, "for n1");
}

#[test]
fn a_token_without_a_life_stays() {
    let kept = secret("abcdef.0123456789abcdef", "", None, now());
    assert_eq!(
        TokenInfo::from_secret(&kept.to_value()).unwrap().expires,
        "never"
    );
    assert!(TokenInfo::from_secret(&Object::new("v1", "Secret").into_value()).is_none());
}

#[test]
fn the_id_is_found_in_every_form() {
    for text in [
        "abcdef",
        "abcdef.0123456789abcdef",
        "coracle1.00ff.abcdef.0123456789abcdef",
    ] {
        assert_eq!(id_of(text).as_deref(), Some("abcdef"), "{text}");
    }
    for text in ["", "abc", "ABCDEF", "abcdef.short", "x.abcdef"] {
        assert_eq!(id_of(text), None, "{text}");
    }
}

#[test]
fn the_join_token_pins_the_ca() {
    let key = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).unwrap();
    let hash = hex::encode(digest(&SHA256, key.cert.der()));
    let joined = join("abcdef.0123456789abcdef", &key.cert.pem()).unwrap();
    assert_eq!(joined, format!("coracle1.{hash}.abcdef.0123456789abcdef"));
    assert!(join("abcdef.0123456789abcdef", "nonsense").is_err());
}
