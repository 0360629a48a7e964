//! Tokens of service accounts, as others check them.

use super::site::{Site, site};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coracle_apiserver::jose::{Algorithm, PublicKey};
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
