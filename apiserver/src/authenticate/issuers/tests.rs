//! The file of issuers, read at start and again when it changes.

use super::super::issuer::tests::{file, key, publish};
use super::*;
use crate::fetch::tests::Site;
use serde_json::json;

const NOW: i64 = 1_780_000_000;

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

async fn name(issuers: &Issuers, site: &Site, key: &crate::jose::SigningKey) -> Option<String> {
    let claims = json!({ "iss": site.url, "aud": "coracle", "sub": "jane", "exp": NOW + 60 });
    let token = key.sign(&claims).unwrap();
    let found = issuers.user(&token, now()).await?;
    Some(found.map_or_else(|error| error, |user| user.name))
}

#[tokio::test]
async fn a_changed_file_counts_once_it_is_good() {
    let (site, own) = (Site::start().await, key());
    publish(&site, &[&own]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("authentication.yaml");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write(&file(&site, json!({})));
    let issuers = Issuers::open(&path, &["https://own.example".to_owned()]).unwrap();
    assert_eq!(issuers.anonymous(), None);
    issuers.look(now()).await;
    assert_eq!(
        name(&issuers, &site, &own).await.as_deref(),
        Some("oidc:jane")
    );

    write("nonsense: [");
    issuers.look(now()).await;
    issuers.look(now()).await;
    assert_eq!(
        name(&issuers, &site, &own).await.as_deref(),
        Some("oidc:jane")
    );
    assert_eq!(
        issuers.reloads.failed.load(Ordering::Relaxed),
        1,
        "tried once"
    );

    let mappings = json!({ "claimMappings": { "username": { "claim": "sub", "prefix": "new:" } } });
    write(&file(&site, mappings));
    issuers.look(now()).await;
    assert_eq!(
        name(&issuers, &site, &own).await.as_deref(),
        Some("new:jane")
    );
    assert_eq!(issuers.reloads.done.load(Ordering::Relaxed), 1);

    // An issuer that cannot be reached is tried again, and the others stay.
    let text = file(&site, json!({})).replace(&site.url, "https://localhost:1");
    write(&text);
    issuers.look(now()).await;
    issuers.look(now()).await;
    assert_eq!(
        name(&issuers, &site, &own).await.as_deref(),
        Some("new:jane")
    );
    assert_eq!(issuers.reloads.failed.load(Ordering::Relaxed), 3);

    write("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n");
    issuers.look(now()).await;
    assert_eq!(name(&issuers, &site, &own).await, None);
}

#[tokio::test]
async fn who_may_be_anonymous_is_settled_at_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("authentication.yaml");
    let write = |anonymous: &str| {
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
        std::fs::write(&path, format!("{head}anonymous: {anonymous}\n")).unwrap();
    };
    write("{enabled: true, conditions: [{path: /livez}, {path: /readyz}]}");
    let issuers = Issuers::open(&path, &[]).unwrap();
    let anonymous = issuers.anonymous().unwrap();
    assert!(anonymous.allows("/livez") && !anonymous.allows("/livez/x"));
    assert!(!anonymous.allows("/version"));
    write("{enabled: false}");
    issuers.look(now()).await;
    assert_eq!(issuers.reloads.failed.load(Ordering::Relaxed), 1);
    let nowhere = Issuers::open(&path, &[]).unwrap().anonymous();
    assert_eq!(nowhere, Some(Anonymous::Nowhere));
}

#[tokio::test]
async fn a_bad_file_stops_the_start_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.yaml");
    let open = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let error = Issuers::open(&path, &[]).unwrap_err().to_string();
        error.replace(&path.display().to_string(), "FILE")
    };
    let begins = "failed to load authentication configuration from file \"FILE\": ";
    assert_eq!(open(""), format!("{begins}the file is empty"));
    assert_eq!(
        open("apiVersion: v1\nkind: Pod\n"),
        format!(
            "{begins}it holds apiVersion \"v1\" and kind \"Pod\", where \
             apiserver.config.k8s.io/v1 and AuthenticationConfiguration are expected"
        )
    );
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
    let error = open(&format!("{head}jwts: []\n"));
    assert!(error.contains("unknown field `jwts`"), "{error}");
    let error = open(&format!("{head}jwt: [{{issuer: {{url: 'http://x'}}}}]\n"));
    assert!(
        error.contains("jwt[0].issuer.url: Invalid value"),
        "{error}"
    );
    let missing = Issuers::open(Path::new("/no/such/file"), &[]).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "cannot read the authentication configuration /no/such/file"
    );
}
