//! What a record may have deleted, and when a kind is taken for gone.

use super::*;
use kube::core::Status;

#[test]
fn a_record_alone_has_nothing_deleted() {
    let identity = Identity {
        api_version: "v1".to_owned(),
        kind: "Any".to_owned(),
        namespace: String::new(),
        name: "a".to_owned(),
    };
    let of = |uid: &str, is_applied, known: &str| {
        let found = Found {
            uid: uid.to_owned(),
            is_applied,
        };
        found.is_of(&Entry::new(identity.clone(), known, true))
    };
    assert!(of("u", true, "u"));
    // It was written before the object was made.
    assert!(of("u", true, ""));
    assert!(!of("u", false, ""), "somebody else made it meanwhile");
    assert!(!of("u", false, "u"), "nothing of it is from a file");
    assert!(!of("new", true, "u"), "another one of its name");
}

#[test]
fn a_kind_is_missing_only_if_the_server_says_so() {
    let api = |code| kube::Error::Api(Status::failure("told", "Any").with_code(code).boxed());
    assert!(is_missing(&api(404)));
    let missing = DiscoveryError::MissingKind("Any".to_owned());
    assert!(is_missing(&kube::Error::Discovery(missing)));
    for code in [401, 403, 429, 500, 503] {
        assert!(!is_missing(&api(code)), "{code}");
    }
    let other = DiscoveryError::MissingResource("anys".to_owned());
    assert!(!is_missing(&kube::Error::Discovery(other)));
    let cut = serde_json::from_str::<Value>("{").unwrap_err();
    assert!(!is_missing(&kube::Error::SerdeError(cut)));
}
