//! Which certificates no longer count.

use super::*;
use crate::view::tests::Objects;
use serde_json::{Value, json};

fn subject(serial: &[u8], user: &str, issued_at: i64) -> Subject {
    Subject {
        serial: serial.to_vec(),
        user: user.to_owned(),
        issued_at,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn certificate(serial: &str) -> RevokedCertificate {
    RevokedCertificate {
        serial: serial.to_owned(),
        user: "jane".to_owned(),
        ends: "1970-01-01T01:00:00Z".to_owned(),
    }
}

#[test]
fn a_certificate_is_taken_back_by_number_and_a_user_by_time() {
    let mut list = Revoked::default();
    for _ in 0..2 {
        list.add_certificate(certificate("0aff"));
        list.add_user("joe", at(1000));
    }
    let list = Revoked::parse(Some(&list.to_text())).unwrap();
    assert_eq!((list.certificates.len(), list.users.len()), (1, 1));
    let index = list.index();
    assert!(index.holds(&subject(&[0x0a, 0xff], "jane", 2000)));
    assert!(!index.holds(&subject(&[0x0a, 0xfe], "jane", 0)));
    assert!(index.holds(&subject(&[1], "joe", 1000)));
    assert!(!index.holds(&subject(&[1], "joe", 1001)));
    let mut later = list.clone();
    later.prune(at(3601));
    assert_eq!((later.certificates.len(), later.users.len()), (0, 1));
}

#[test]
fn a_number_is_the_same_with_zeros_and_colons_before_and_within() {
    for text in ["f1aa", "00F1AA", "00:f1:aa", "0000f1aa"] {
        let mut list = Revoked::default();
        list.add_certificate(certificate("f1aa"));
        list.add_certificate(certificate(text));
        assert_eq!(list.certificates.len(), 1, "{text}");
        let held = list.index().holds(&subject(&[0xf1, 0xaa], "jane", 0));
        assert!(held, "{text}");
    }
    assert_eq!(serial("xyz").or(serial("")).or(serial("123")), None);
}

#[test]
fn a_clock_that_is_set_back_gives_nothing_back() {
    let mut list = Revoked::default();
    list.add_user("joe", at(1000));
    list.add_user("joe", at(10));
    assert!(list.index().holds(&subject(&[1], "joe", 1000)));
    // Written by hand: each takes back, and a moment that cannot be read all.
    let user = |until: &str| json!({ "user": "joe", "issuedUntil": until });
    let read = |users: Value| {
        let text = json!({ "users": users }).to_string();
        Revoked::parse(Some(&text)).unwrap().index()
    };
    let earlier = user("1970-01-01T00:00:10Z");
    let twice = read(json!([user("1970-01-01T00:16:40Z"), earlier]));
    assert!(twice.holds(&subject(&[1], "joe", 1000)));
    let unread = read(json!([user("yesterday"), earlier]));
    assert!(unread.holds(&subject(&[1], "joe", i64::MAX)));
}

#[test]
fn a_change_counts_at_once_and_a_broken_list_changes_nothing() {
    let view = Objects::new([]);
    let revocations = Revocations::default();
    let jane = subject(&[7], "jane", 0);
    let standing = || revocations.standing(view.as_ref(), &jane);
    assert_eq!(standing(), Standing::Good);
    let put = |data: Value| {
        let metadata = json!({ "namespace": NAMESPACE, "name": NAME });
        view.put("configmaps", json!({ "metadata": metadata, "data": data }));
    };
    put(json!({ KEY: r#"{"certificates":[{"serial":"07"},{"serial":"no"}]}"# }));
    assert_eq!(standing(), Standing::Revoked);
    for broken in [
        json!({ KEY: "nonsense" }),
        json!({ "other": "{}" }),
        json!({}),
    ] {
        put(broken.clone());
        assert_eq!(standing(), Standing::Revoked, "{broken}");
    }
    put(json!({ KEY: "{}" }));
    assert_eq!(standing(), Standing::Good);
}

#[test]
fn no_certificate_counts_under_a_list_that_was_never_read_but_that_of_who_mends_it() {
    for data in [json!({ KEY: "nonsense" }), json!({})] {
        let metadata = json!({ "namespace": NAMESPACE, "name": NAME });
        let map = json!({ "metadata": metadata, "data": data });
        let view = Objects::new([("configmaps", map)]);
        let revocations = Revocations::default();
        let standing = |user: &str| {
            let subject = subject(&[7], user, 0);
            revocations.standing(view.as_ref(), &subject)
        };
        for _ in 0..2 {
            assert_eq!(standing("jane"), Standing::Unknown);
            assert_eq!(standing(KEEPER), Standing::Good);
        }
    }
}
