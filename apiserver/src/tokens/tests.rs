//! Tokens that are good, and each way in which one is not.

use super::check::TokenError;
use super::claims::{Claims, Reference};
use super::*;
use crate::pki::signing::SignatureError;
use crate::view::tests::Objects;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::json;

const NOW: i64 = 1_780_000_000;

fn reference(name: &str) -> Reference {
    Reference {
        name: name.to_owned(),
        uid: format!("{name}-uid"),
    }
}

fn claims() -> Claims {
    Claims {
        id: "j1".to_owned(),
        audiences: vec![ISSUER_DEFAULT.to_owned(), "vault".to_owned()],
        issued_at: NOW,
        not_before: NOW,
        expires_at: NOW + 3600,
        namespace: "web".to_owned(),
        account: reference("bot"),
        pod: Some(reference("p")),
        node: Some(reference("n")),
        ..Claims::default()
    }
}

fn tokens() -> (Tokens, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(directory.path(), ISSUER_DEFAULT).unwrap();
    (tokens, directory)
}

fn object(name: &str, namespace: &str) -> serde_json::Value {
    json!({ "metadata": { "name": name, "namespace": namespace, "uid": format!("{name}-uid") } })
}

fn check_in(
    objects: Vec<(&'static str, serde_json::Value)>,
    claims: &Claims,
    wanted: &str,
    seconds: i64,
) -> Result<String, TokenError> {
    let (tokens, _directory) = tokens();
    let token = tokens.issue(claims).unwrap();
    let now = Timestamp::from_second(NOW + seconds).unwrap();
    let view = Objects::new(objects);
    let wanted = [wanted.to_owned()];
    let (user, good) = tokens.user(view.as_ref(), &token, &wanted, now)?;
    assert_eq!(good, wanted);
    Ok(format!(
        "{} {} {:?}",
        user.name,
        user.groups.join(","),
        user.extra
    ))
}

fn check(claims: &Claims, wanted: &str, seconds: i64) -> Result<String, TokenError> {
    let objects = vec![
        ("serviceaccounts", object("bot", "web")),
        ("pods", object("p", "web")),
    ];
    check_in(objects, claims, wanted, seconds)
}

#[test]
fn a_bound_token_names_its_user() {
    let expected = "system:serviceaccount:web:bot \
                    system:serviceaccounts,system:serviceaccounts:web \
                    {\"authentication.kubernetes.io/credential-id\": [\"JTI=j1\"], \
                    \"authentication.kubernetes.io/node-name\": [\"n\"], \
                    \"authentication.kubernetes.io/node-uid\": [\"n-uid\"], \
                    \"authentication.kubernetes.io/pod-name\": [\"p\"], \
                    \"authentication.kubernetes.io/pod-uid\": [\"p-uid\"]}";
    assert_eq!(check(&claims(), "vault", 0).unwrap(), expected);
    assert_eq!(check(&claims(), ISSUER_DEFAULT, 3650).unwrap(), expected);
}

#[test]
fn time_audience_and_objects_bind() {
    assert_eq!(check(&claims(), "vault", 3661), Err(TokenError::Expired));
    assert_eq!(check(&claims(), "vault", -61), Err(TokenError::NotYet));
    let audience = check(&claims(), "other", 0).unwrap_err().to_string();
    assert_eq!(
        audience,
        "token audiences [\"https://kubernetes.default.svc.cluster.local\" \"vault\"] is invalid \
         for the target audiences [\"other\"]"
    );
    let account = || ("serviceaccounts", object("bot", "web"));
    let check = |objects| check_in(objects, &claims(), "vault", 0);
    let missing = check(vec![]).unwrap_err().to_string();
    assert_eq!(missing, "serviceaccount \"bot\" not found");
    assert_eq!(check(vec![account()]), Err(TokenError::Invalidated));
    let mut other = object("p", "web");
    other["metadata"]["uid"] = "new".into();
    let other = check(vec![account(), ("pods", other)]).unwrap_err();
    assert_eq!(
        other.to_string(),
        "pod UID (new) does not match service account pod ref claim (p-uid)"
    );
    let mut gone = object("p", "web");
    gone["metadata"]["deletionTimestamp"] = "2026-05-01T00:00:00Z".into();
    assert_eq!(
        check(vec![account(), ("pods", gone)]),
        Err(TokenError::Invalidated)
    );
    let mut bound = claims();
    bound.pod = None;
    let lost = check_in(vec![account()], &bound, "vault", 0);
    assert_eq!(lost, Err(TokenError::Invalidated));
    let found = check_in(
        vec![account(), ("nodes", object("n", ""))],
        &bound,
        "vault",
        0,
    );
    assert!(found.is_ok());
}

#[test]
fn nobody_else_signs() {
    let (tokens, directory) = tokens();
    let (others, _elsewhere) = self::tokens();
    let view = Objects::new([("serviceaccounts", object("bot", "web"))]);
    let now = Timestamp::from_second(NOW).unwrap();
    let wanted = ["vault".to_owned()];
    let check = |token: &str| tokens.user(view.as_ref(), token, &wanted, now).map(|_| ());
    let forged = others.issue(&claims()).unwrap();
    assert_eq!(check(&forged), Err(SignatureError::UnknownKey.into()));
    let token = tokens.issue(&claims()).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let changed = URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
    let changed = String::from_utf8(changed).unwrap().replace("bot", "root");
    let changed = URL_SAFE_NO_PAD.encode(changed);
    let forged = format!("{}.{changed}.{}", parts[0], parts[2]);
    assert_eq!(check(&forged), Err(SignatureError::Wrong.into()));
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let forged = format!("{none}.{}.", parts[1]);
    assert_eq!(check(&forged), Err(SignatureError::Wrong.into()));
    for strange in ["", "a.b", "a.b.c", "abcdef.0123456789abcdef"] {
        assert_eq!(check(strange), Err(TokenError::OfAnother), "{strange}");
    }
    // The key is there at the next start.
    let again = Tokens::open(directory.path(), ISSUER_DEFAULT).unwrap();
    assert_eq!(again.keys(), tokens.keys());
    let read = again.key.verify(&token).unwrap();
    assert_eq!(Claims::read(&read), claims());
}
