//! Tokens of service accounts, as others check them.

use super::site::{PATIENCE, Site, audited_site, site};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use coracle_apiserver::jose::{Algorithm, PublicKey};
use coracle_apiserver::tokens::claims::Reference;
use coracle_apiserver::tokens::legacy;
use serde_json::{Value, json};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// A token for `vault`, bound to a Secret.
async fn token(site: &Site) -> String {
    let named = |name: &str| json!({ "metadata": { "name": name } });
    site.post(ACCOUNTS, &named("bot")).await.ok();
    site.post(SECRETS, &named("holder")).await.ok();
    let wanted = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {
            "audiences": ["vault"], "expirationSeconds": 3600,
            "boundObjectRef": { "apiVersion": "v1", "kind": "Secret", "name": "holder" },
        },
    });
    let made = site.post(&format!("{ACCOUNTS}/bot/token"), &wanted).await;
    made.ok()["status"]["token"].as_str().unwrap().to_owned()
}

fn part(text: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
}

#[tokio::test]
async fn a_token_is_checked_by_what_the_server_publishes() {
    let site = site().await;
    let token = token(&site).await;
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (head, claims) = signed.split_once('.').unwrap();
    let (head, claims) = (part(head), part(claims));

    let about = site.get("/.well-known/openid-configuration").await.ok();
    assert_eq!(about["issuer"], claims["iss"]);
    assert_eq!(about["response_types_supported"], json!(["id_token"]));
    assert_eq!(about["subject_types_supported"], json!(["public"]));
    let algorithms = &about["id_token_signing_alg_values_supported"];
    assert_eq!(*algorithms, json!([head["alg"]]));
    let path = "/openid/v1/jwks";
    let place = about["jwks_uri"].as_str().unwrap();
    assert!(
        place.starts_with("https://192.0.2.7:") && place.ends_with(path),
        "{place}"
    );

    let keys = site.get(path).await.ok();
    let keys = keys["keys"].as_array().unwrap().iter();
    let own: Vec<&Value> = keys.filter(|key| key["kid"] == head["kid"]).collect();
    assert_eq!(own.len(), 1);
    assert_eq!(own[0]["use"], "sig");
    assert!(
        own[0].get("d").is_none(),
        "the private half is not for others"
    );
    let key = PublicKey::from_jwk(own[0]).unwrap();
    let algorithm = Algorithm::named(head["alg"].as_str().unwrap()).unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    assert!(key.verify(algorithm, signed, &signature));
    assert!(!key.verify(algorithm, &signed[..signed.len() - 1], &signature));
}

#[tokio::test]
async fn a_review_says_whose_a_token_is_for_its_audience_and_while_what_it_is_bound_to_is_there() {
    let site = site().await;
    let token = token(&site).await;
    let review = async |audience: &str| {
        let asked = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": { "token": token, "audiences": [audience] },
        });
        site.post(REVIEWS, &asked).await.ok()["status"].clone()
    };
    let good = review("vault").await;
    assert_eq!(good["authenticated"], true);
    assert_eq!(good["audiences"], json!(["vault"]));
    let user = &good["user"];
    assert_eq!(user["username"], "system:serviceaccount:default:bot");
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    assert_eq!(user["groups"], json!(groups));
    let elsewhere = review("bank").await;
    assert_eq!(elsewhere["authenticated"], Value::Null);
    let error = elsewhere["error"].as_str().unwrap();
    assert!(
        error.contains("is invalid for the target audiences"),
        "{error}"
    );
    let secret = format!("{SECRETS}/holder");
    site.delete(&secret, &Value::Null).await.ok();
    let after = review("vault").await;
    assert_eq!(after["authenticated"], Value::Null);
    assert!(after["error"].is_string(), "{after}");
}

const OLD: &str = "/api/v1/namespaces/default/secrets/old";
const MERGE: &str = "merge-patch";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// A token without an end in the Secret `old`, which its account names.
async fn old_token(site: &Site) -> String {
    let account = json!({ "metadata": { "name": "bot" }, "secrets": [{ "name": "old" }] });
    let account = site.post(ACCOUNTS, &account).await.ok();
    let claims = legacy::Claims {
        namespace: "default".to_owned(),
        account: Reference {
            name: "bot".to_owned(),
            uid: account["metadata"]["uid"].as_str().unwrap().to_owned(),
        },
        secret: "old".to_owned(),
    };
    let token = site.legacy_token(&claims);
    let annotations = json!({ "kubernetes.io/service-account.name": "bot" });
    let secret = json!({
        "metadata": { "name": "old", "annotations": annotations },
        "type": "kubernetes.io/service-account-token",
        "data": { "token": STANDARD.encode(&token) },
    });
    site.post(SECRETS, &secret).await.ok();
    token
}

async fn until_used_on(site: &Site, day: &str) {
    let looked = async {
        while site.get(OLD).await.ok()["metadata"]["labels"][LAST_USED] != day {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, looked).await;
    waited.unwrap_or_else(|_| panic!("no use on {day} is written down"));
}

#[tokio::test]
async fn who_shows_an_old_token_to_another_server_uses_it_too_until_it_is_marked() {
    let site = audited_site().await;
    site.run();
    let token = old_token(&site).await;
    let review = async |part: &str| {
        let asked = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": { "token": token },
        });
        site.post(&format!("{REVIEWS}?{part}"), &asked).await
    };
    let annotations = async |part: &str| {
        let path = format!("{REVIEWS}?{part}");
        site.recorded(&path).await["annotations"].clone()
    };
    let good = review("pretty=false").await;
    let warning = good.headers.get("warning").unwrap().to_str().unwrap();
    assert!(
        warning.contains("auto-generated secret-based tokens"),
        "{warning}"
    );
    assert_eq!(good.ok()["status"]["authenticated"], true);
    let told = annotations("pretty=false").await;
    let name = "authentication.k8s.io/legacy-token-autogenerated-secret";
    assert_eq!(told[name], "old");
    until_used_on(&site, "2026-06-01").await;

    let labels = json!({ LAST_USED: "2025-06-01", INVALID_SINCE: "2026-05-31" });
    let marked = json!({ "metadata": { "labels": labels } });
    site.patch(OLD, MERGE, &marked).await.ok();
    let refused = review("pretty=true").await;
    assert!(refused.headers.get("warning").is_none());
    let refused = refused.ok()["status"].clone();
    assert_eq!(refused["authenticated"], Value::Null);
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("has been marked invalid"), "{error}");
    let told = annotations("pretty=true").await;
    let name = "authentication.k8s.io/legacy-token-invalidated";
    assert_eq!(told[name], "old/default");
    until_used_on(&site, "2026-06-01").await;

    let metrics = site.get("/metrics").await;
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    for counted in [
        "serviceaccount_legacy_tokens_total 2",
        "serviceaccount_legacy_auto_token_uses_total 1",
        "serviceaccount_legacy_manual_token_uses_total 0",
        "serviceaccount_invalid_legacy_auto_token_uses_total 1",
        "serviceaccount_valid_tokens_total 0",
    ] {
        assert!(metrics.lines().any(|line| line == counted), "{counted}");
    }

    let unmarked = json!({ "metadata": { "labels": { INVALID_SINCE: null } } });
    site.patch(OLD, MERGE, &unmarked).await.ok();
    let again = review("pretty=1").await.ok();
    assert_eq!(again["status"]["authenticated"], true);
}
