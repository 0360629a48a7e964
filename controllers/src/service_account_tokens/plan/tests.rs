//! Secrets are filled once, kept in line, and go with their account.

use super::*;
use serde_json::{Value, json};

const CA_PEM: &str = "the ca";

fn account() -> ServiceAccount {
    let account = json!({
        "metadata": { "name": "bot", "namespace": "web", "uid": "u1" },
        "secrets": [{ "name": "t" }, { "name": "other" }],
    });
    serde_json::from_value(account).unwrap()
}

fn secret(change: impl FnOnce(&mut Value)) -> Secret {
    let mut secret = json!({
        "metadata": {
            "name": "t", "namespace": "web",
            "annotations": { NAME: "bot" },
        },
        "type": TYPE,
    });
    change(&mut secret);
    serde_json::from_value(secret).unwrap()
}

#[test]
fn an_empty_secret_is_filled_and_then_left_alone() {
    let (account, empty) = (account(), secret(|_| {}));
    assert_eq!(super::account(&empty), Some(("bot", "")));
    let planned = plan(&empty, Some(&account), CA_PEM);
    assert_eq!(
        planned,
        Plan::Fill {
            account: &account,
            with_token: true
        }
    );
    let filled = filled(&empty, &account, CA_PEM, Some("jwt".to_owned()));
    let data = filled.data.as_ref().unwrap();
    assert_eq!(data["ca.crt"].0, b"the ca");
    assert_eq!(data["namespace"].0, b"web");
    assert_eq!(data["token"].0, b"jwt");
    assert_eq!(super::account(&filled), Some(("bot", "u1")));
    assert_eq!(plan(&filled, Some(&account), CA_PEM), Plan::Leave);
    let renewed = plan(&filled, Some(&account), "another ca");
    assert_eq!(
        renewed,
        Plan::Fill {
            account: &account,
            with_token: false
        }
    );
}

#[test]
fn a_secret_goes_with_its_account() {
    assert_eq!(plan(&secret(|_| {}), None, CA_PEM), Plan::Delete);
    let going = secret(|one| {
        one["metadata"]["deletionTimestamp"] = "2026-06-01T00:00:00Z".into();
    });
    assert_eq!(plan(&going, None, CA_PEM), Plan::Leave);
    let unnamed = secret(|one| one["metadata"]["annotations"] = json!({}));
    assert_eq!(super::account(&unnamed), None);
}

#[test]
fn an_account_forgets_a_secret_that_is_gone() {
    let left = without(&account(), "t").unwrap().secrets.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].name.as_deref(), Some("other"));
    assert_eq!(without(&account(), "unknown"), None);
}
