//! Tokens that are good, and each way in which one is not.

use super::check::TokenError;
use super::claims::{Claims, Reference};
use super::*;
use crate::jose::{SignatureError, Unverified};
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
    let tokens = Tokens::open(directory.path(), &Settings::default()).unwrap();
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
    let mut remarks = Remarks::default();
    let checked = tokens.check(view.as_ref(), &token, &wanted, now, &mut remarks);
    let Checked { user, audiences } = checked?;
    assert_eq!(audiences, wanted);
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
    let check = |token: &str| {
        let mut remarks = Remarks::default();
        let checked = tokens.check(view.as_ref(), token, &wanted, now, &mut remarks);
        assert_eq!(remarks, Remarks::default(), "{token}");
        checked.map(|_| ())
    };
    let forged = others.issue(&claims()).unwrap();
    assert_eq!(check(&forged), Err(SignatureError::UnknownKey.into()));
    let token = tokens.issue(&claims()).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let changed = URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
    let changed = String::from_utf8(changed).unwrap().replace("bot", "root");
    let changed = URL_SAFE_NO_PAD.encode(changed);
    let forged = format!("{}.{changed}.{}", parts[0], parts[2]);
    assert_eq!(check(&forged), Err(SignatureError::Wrong.into()));
    for algorithm in ["none", "None", "HS256", "RS256", "ES384", ""] {
        let header = URL_SAFE_NO_PAD.encode(json!({ "alg": algorithm }).to_string());
        for signature in ["", parts[2]] {
            let forged = format!("{header}.{}.{signature}", parts[1]);
            assert_eq!(
                check(&forged),
                Err(SignatureError::Wrong.into()),
                "{forged}"
            );
        }
    }
    for strange in ["", "a.b", "a.b.c", "abcdef.0123456789abcdef"] {
        assert_eq!(check(strange), Err(TokenError::OfAnother), "{strange}");
    }
    // The key is there at the next start.
    let again = Tokens::open(directory.path(), &Settings::default()).unwrap();
    assert_eq!(again.keys(), tokens.keys());
    let read = Unverified::parse(&token).unwrap();
    assert_eq!(Claims::read(read.verify(&again.keys).unwrap()), claims());
}

#[test]
fn tokens_of_an_older_key_and_of_another_issuer_are_taken() {
    let (before, old) = tokens();
    let token = before.issue(&claims()).unwrap();
    let (_, new) = tokens();
    let settings = Settings {
        issuers: vec!["https://new.example".to_owned(), ISSUER_DEFAULT.to_owned()],
        audiences: vec!["api".to_owned()],
        key_files: vec![old.path().join("sa.key")],
        jwks_uri: Some("https://keys.example/jwks".to_owned()),
        ..Settings::default()
    };
    let tokens = Tokens::open(new.path(), &settings).unwrap();
    let view = Objects::new([
        ("serviceaccounts", object("bot", "web")),
        ("pods", object("p", "web")),
    ]);
    let now = Timestamp::from_second(NOW).unwrap();
    let check = |token: &str| {
        let (wanted, mut remarks) = (["vault".to_owned()], Remarks::default());
        tokens.check(view.as_ref(), token, &wanted, now, &mut remarks)
    };
    assert!(check(&token).is_ok());
    let own = tokens.issue(&claims()).unwrap();
    assert_eq!(
        crate::jose::issuer(&own).as_deref(),
        Some("https://new.example")
    );
    assert!(check(&own).is_ok());
    assert_eq!(tokens.audiences(), ["api"]);
    assert_eq!(tokens.keys()["keys"].as_array().unwrap().len(), 2);
    let discovery = tokens.configuration("10.0.0.1:6443");
    assert_eq!(discovery["issuer"], "https://new.example");
    assert_eq!(discovery["jwks_uri"], "https://keys.example/jwks");
    let missing = Settings {
        signing_key_file: Some("/no/such.key".into()),
        ..Settings::default()
    };
    let error = Tokens::open(new.path(), &missing).unwrap_err();
    assert_eq!(error.to_string(), "cannot read /no/such.key");
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(why, "No such file or directory (os error 2)");
}

#[test]
fn a_token_past_its_own_time_is_told_of() {
    let (tokens, _directory) = tokens();
    let mut claims = claims();
    claims.warn_after = Some(NOW + 100);
    let token = tokens.issue(&claims).unwrap();
    let view = Objects::new([
        ("serviceaccounts", object("bot", "web")),
        ("pods", object("p", "web")),
    ]);
    let remarks = |seconds| {
        let now = Timestamp::from_second(NOW + seconds).unwrap();
        let (wanted, mut remarks) = (["vault".to_owned()], Remarks::default());
        let checked = tokens.check(view.as_ref(), &token, &wanted, now, &mut remarks);
        checked.unwrap();
        remarks
    };
    assert_eq!(remarks(100).count, Some(Count::Fresh));
    let late = remarks(107);
    assert_eq!(late.count, Some(Count::Stale));
    assert_eq!(
        late.audit,
        [(
            "authentication.k8s.io/stale-token",
            "subject: system:serviceaccount:web:bot, seconds after warning threshold: 7".to_owned()
        )]
    );
}

mod legacy_tokens {
    use super::super::legacy::{Claims, LAST_USED_LABEL, Used};
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::Value;

    fn claims() -> Claims {
        Claims {
            namespace: "web".to_owned(),
            account: reference("bot"),
            secret: "t".to_owned(),
        }
    }

    fn check(change: impl FnOnce(&mut Value, &mut Value)) -> (Result<Checked, String>, Remarks) {
        let (tokens, _directory) = tokens();
        let token = tokens.issue_legacy(&claims()).unwrap();
        let mut secret = object("t", "web");
        secret["data"] = json!({ "token": STANDARD.encode(&token) });
        let mut account = object("bot", "web");
        change(&mut secret, &mut account);
        let view = Objects::new([("secrets", secret), ("serviceaccounts", account)]);
        let now = Timestamp::from_second(NOW).unwrap();
        let wanted = [ISSUER_DEFAULT.to_owned()];
        let mut remarks = Remarks::default();
        let checked = tokens.check(view.as_ref(), &token, &wanted, now, &mut remarks);
        (checked.map_err(|error| error.to_string()), remarks)
    }

    fn annotation(name: &str, value: &str) -> (String, String) {
        (format!("authentication.k8s.io/{name}"), value.to_owned())
    }

    fn annotations(remarks: &Remarks) -> Vec<(String, String)> {
        let told = remarks.audit.iter();
        told.map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect()
    }

    const SUBJECT: &str = "system:serviceaccount:web:bot";

    #[test]
    fn a_token_is_good_while_its_secret_holds_it() {
        let (good, remarks) = check(|_, _| {});
        let good = good.unwrap();
        assert_eq!(good.user.name, SUBJECT);
        assert_eq!(good.audiences, [ISSUER_DEFAULT]);
        assert!(good.user.extra.is_empty());
        assert_eq!(remarks.warning, None);
        assert_eq!(remarks.count, Some(Count::Manual));
        let told = annotations(&remarks);
        let manual = annotation("legacy-token-manual-secret", "t");
        assert_eq!(told, [annotation("legacy-token", SUBJECT), manual]);
        let used = remarks.used.unwrap();
        assert_eq!((used.secret.as_str(), used.uid.as_str()), ("t", "t-uid"));
        let (named, remarks) = check(|_, account| account["secrets"] = json!([{ "name": "t" }]));
        named.unwrap();
        assert!(remarks.warning.is_some() && remarks.used.is_some());
        assert_eq!(remarks.count, Some(Count::Generated));
        let generated = annotation("legacy-token-autogenerated-secret", "t");
        assert!(annotations(&remarks).contains(&generated));
    }

    #[test]
    fn the_use_of_one_that_is_marked_is_refused_and_told_of() {
        let (refused, remarks) = check(|secret, account| {
            account["secrets"] = json!([{ "name": "t" }]);
            secret["metadata"]["labels"] =
                json!({ "kubernetes.io/legacy-token-invalid-since": "2026-01-01" });
        });
        let why = "the token in secret web/t for service account web/bot has been marked invalid.";
        let refused = refused.unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
        assert_eq!(
            (remarks.warning, remarks.count),
            (None, Some(Count::Invalidated))
        );
        let invalidated = annotation("legacy-token-invalidated", "t/web");
        let told = annotations(&remarks);
        assert_eq!(told, [annotation("legacy-token", SUBJECT), invalidated]);
        assert_eq!(remarks.used.unwrap().secret, "t");
    }

    #[test]
    fn and_not_a_moment_longer() {
        /// Changes the Secret and its account.
        type Change = fn(&mut Value, &mut Value);
        let cases: [(&str, Change); 6] = [
            ("Token does not match server's copy", |secret, _| {
                secret["data"]["token"] = "eA==".into();
            }),
            ("Token has been invalidated", |secret, _| {
                secret["metadata"]["name"] = "other".into();
            }),
            ("Token has been invalidated", |secret, _| {
                secret["metadata"]["deletionTimestamp"] = "2026-05-01T00:00:00Z".into();
            }),
            ("ServiceAccount web/bot has been deleted", |_, account| {
                account["metadata"]["deletionTimestamp"] = "2026-05-01T00:00:00Z".into();
            }),
            (
                "ServiceAccount UID (new) does not match claim (bot-uid)",
                |_, account| account["metadata"]["uid"] = "new".into(),
            ),
            ("serviceaccount \"bot\" not found", |_, account| {
                account["metadata"]["name"] = "other".into();
            }),
        ];
        for (why, change) in cases {
            let (refused, remarks) = check(change);
            assert_eq!(refused.unwrap_err(), why);
            let told = annotations(&remarks);
            assert_eq!(told, [annotation("legacy-token", SUBJECT)], "{why}");
            assert!(remarks.is_legacy && remarks.count.is_none());
            assert!(remarks.used.is_none(), "{why}");
        }
    }

    #[test]
    fn its_last_use_is_written_once_a_day() {
        let used = |last_used: &str| Used {
            namespace: "web".to_owned(),
            secret: "t".to_owned(),
            uid: "u".to_owned(),
            last_used: last_used.to_owned(),
        };
        let now: Timestamp = "2026-06-01T10:00:00Z".parse().unwrap();
        assert!(used("2026-06-01").label(now).is_none());
        assert!(used("2026-06-02").label(now).is_none());
        let request = used("2026-05-31").label(now).unwrap();
        assert_eq!(request.uri(), "/api/v1/namespaces/web/secrets/t");
        let patch: Value = serde_json::from_str(request.body()).unwrap();
        assert_eq!(patch["metadata"]["labels"][LAST_USED_LABEL], "2026-06-01");
    }
}
