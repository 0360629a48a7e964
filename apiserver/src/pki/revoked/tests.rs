//! Which certificates no longer count.

use super::*;
use crate::view::tests::Objects;
use serde_json::json;

fn subject(serial: &[u8], user: &str, issued_at: i64) -> Subject {
    Subject {
        serial: serial.to_vec(),
        user: user.to_owned(),
        issued_at,
    }
}

#[test]
fn a_certificate_is_taken_back_by_number_and_a_user_by_time() {
    let now = Timestamp::from_second(1000).unwrap();
    let mut list = Revoked::default();
    for _ in 0..2 {
        list.add_certificate(RevokedCertificate {
            serial: "0aff".to_owned(),
            user: "jane".to_owned(),
            ends: "1970-01-01T01:00:00Z".to_owned(),
        });
        list.add_user("joe", now);
    }
    let list = Revoked::parse(&list.to_text()).unwrap();
    assert_eq!((list.certificates.len(), list.users.len()), (1, 1));
    assert!(list.holds(&subject(&[0x0a, 0xff], "jane", 2000)));
    assert!(!list.holds(&subject(&[0x0a, 0xfe], "jane", 0)));
    assert!(list.holds(&subject(&[1], "joe", 1000)));
    assert!(!list.holds(&subject(&[1], "joe", 1001)));
    let mut later = list.clone();
    later.prune(Timestamp::from_second(3601).unwrap());
    assert_eq!((later.certificates.len(), later.users.len()), (0, 1));
}

#[test]
fn a_change_counts_at_once_and_a_broken_list_changes_nothing() {
    let view = Objects::new([]);
    let revocations = Revocations::default();
    let jane = subject(&[7], "jane", 0);
    assert!(!revocations.is_revoked(view.as_ref(), &jane));
    let put = |text: &str| {
        let map = json!({
            "metadata": { "namespace": NAMESPACE, "name": NAME },
            "data": { KEY: text },
        });
        view.put("configmaps", map);
    };
    put(r#"{"certificates":[{"serial":"07"}]}"#);
    assert!(revocations.is_revoked(view.as_ref(), &jane));
    put("nonsense");
    assert!(revocations.is_revoked(view.as_ref(), &jane));
    put("{}");
    assert!(!revocations.is_revoked(view.as_ref(), &jane));
}
