//! Tokens of an issuer that serves its keys over TLS, and the users that their claims make.

use super::*;
use crate::authenticate::configuration::Configuration;
use crate::fetch::tests::Site;
use crate::jose::SigningKey;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

const NOW: i64 = 1_780_000_000;

pub fn key() -> SigningKey {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    SigningKey::from_pem(key.as_bytes()).unwrap()
}

/// Publishes keys where an issuer does.
pub fn publish(site: &Site, keys: &[&SigningKey]) {
    let configuration = json!({ "issuer": site.url, "jwks_uri": format!("{}/keys", site.url) });
    site.answer(
        "/.well-known/openid-configuration",
        200,
        configuration.to_string(),
    );
    let keys: Vec<Value> = keys.iter().map(|key| key.public().to_jwk()).collect();
    site.answer("/keys", 200, json!({ "keys": keys }).to_string());
}

/// The file that names the issuer, with mappings and rules.
pub fn file(site: &Site, rest: Value) -> String {
    let mut authenticator = json!({
        "issuer": {
            "url": site.url,
            "audiences": ["coracle"],
            "certificateAuthority": site.authority_pem,
        },
        "claimMappings": { "username": { "claim": "sub", "prefix": "oidc:" } },
    });
    for (name, value) in rest.as_object().unwrap() {
        authenticator[name] = value.clone();
    }
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [authenticator],
    })
    .to_string()
}

async fn issuer(site: &Site, rest: Value) -> Issuer {
    let configuration = Configuration::read(&file(site, rest)).unwrap();
    let errors = super::super::configuration::validate::validate(&configuration, &[]);
    assert!(errors.is_empty(), "{errors:?}");
    let issuer = Issuer::new(&configuration.jwt[0]).unwrap();
    issuer.discover().await.unwrap();
    issuer
}

fn claims(site: &Site) -> Value {
    json!({ "iss": site.url, "aud": "coracle", "sub": "jane", "exp": NOW + 60, "jti": "j1" })
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(NOW + seconds).unwrap()
}

#[tokio::test]
async fn a_token_of_the_issuer_names_a_user() {
    let (site, own) = (Site::start().await, key());
    publish(&site, &[&own]);
    let issuer = issuer(&site, json!({})).await;
    let token = own.sign(&claims(&site)).unwrap();
    let named = crate::jose::issuer(&token).unwrap();
    assert!(issuer.is_named(&named) && !issuer.is_named("https://other.example"));
    let user = issuer.user(&token, at(0)).await.unwrap();
    assert_eq!(user.name, "oidc:jane");
    assert_eq!(
        user.extra["authentication.kubernetes.io/credential-id"],
        ["JTI=j1"]
    );
    let asked = site.asked();
    issuer.user(&token, at(1)).await.unwrap();
    assert_eq!(site.asked(), asked, "the keys are kept");
}

#[tokio::test]
async fn other_times_audiences_keys_and_algorithms_are_refused() {
    let (site, own, foreign) = (Site::start().await, key(), key());
    publish(&site, &[&own]);
    let issuer = issuer(&site, json!({})).await;
    let refused = |key: &SigningKey, name: &'static str, value: Value| {
        let mut claims = claims(&site);
        claims[name] = value;
        let token = key.sign(&claims).unwrap();
        let issuer = &issuer;
        async move { issuer.user(&token, at(0)).await.unwrap_err() }
    };
    assert_eq!(
        refused(&own, "exp", json!(NOW - 1)).await,
        "oidc: verify token: oidc: token is expired (Token Expiry: 2026-05-28 20:26:39 +0000 UTC)"
    );
    assert_eq!(
        refused(&own, "aud", json!(["other"])).await,
        "oidc: verify token: oidc: expected audience \"coracle\" got [\"other\"]"
    );
    let early = refused(&own, "nbf", json!(NOW + 61)).await;
    assert!(
        early.contains("before the nbf (not before) time"),
        "{early}"
    );
    let forged = refused(&foreign, "sub", json!("root")).await;
    assert_eq!(
        forged,
        "oidc: verify token: failed to verify signature: failed to verify id token signature"
    );
    let parts = own.sign(&claims(&site)).unwrap();
    let parts: Vec<&str> = parts.split('.').collect();
    let long = "x".repeat(10_000);
    for algorithm in ["none", "HS256", &long] {
        let header = json!({ "alg": algorithm }).to_string();
        let header = URL_SAFE_NO_PAD.encode(header);
        let token = format!("{header}.{}.{}", parts[1], parts[2]);
        let error = issuer.user(&token, at(0)).await.unwrap_err();
        assert!(error.contains("unsupported algorithm"), "{error}");
        assert!(error.len() < 300, "{error}");
    }
}

#[tokio::test]
async fn keys_that_the_issuer_adds_are_found_and_invented_ones_cost_one_fetch() {
    let (site, old, new, foreign) = (Site::start().await, key(), key(), key());
    publish(&site, &[&old]);
    let issuer = issuer(&site, json!({})).await;
    let token = |key: &SigningKey| key.sign(&claims(&site)).unwrap();
    issuer.user(&token(&old), at(0)).await.unwrap();
    publish(&site, &[&old, &new]);
    assert!(
        issuer.user(&token(&new), at(1)).await.is_err(),
        "asked a moment ago"
    );
    issuer.user(&token(&new), at(11)).await.unwrap();
    let asked = site.asked();
    for second in 12..20 {
        assert!(issuer.user(&token(&foreign), at(second)).await.is_err());
    }
    assert_eq!(site.asked(), asked);
    // A key that is taken back ends when the keys are old.
    publish(&site, &[&new]);
    issuer.user(&token(&old), at(30)).await.unwrap();
    issuer.refresh(at(31)).await;
    assert_eq!(site.asked(), asked, "they are not old yet");
    let mut late = claims(&site);
    late["exp"] = json!(NOW + 10_000);
    let late = old.sign(&late).unwrap();
    // No request waits for that.
    issuer.user(&late, at(4000)).await.unwrap();
    assert_eq!(site.asked(), asked);
    issuer.refresh(at(4000)).await;
    assert!(issuer.user(&late, at(4000)).await.is_err());
    // Without an answer the keys that are there count.
    site.answer("/keys", 500, "");
    let mut last = claims(&site);
    last["exp"] = json!(NOW + 100_000);
    issuer.refresh(at(9000)).await;
    issuer
        .user(&new.sign(&last).unwrap(), at(9000))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_issuer_that_names_another_is_not_believed() {
    let (site, own) = (Site::start().await, key());
    publish(&site, &[&own]);
    site.answer(
        "/.well-known/openid-configuration",
        200,
        json!({ "issuer": "https://other.example", "jwks_uri": site.url }).to_string(),
    );
    let configuration = Configuration::read(&file(&site, json!({}))).unwrap();
    let issuer = Issuer::new(&configuration.jwt[0]).unwrap();
    let error = issuer.discover().await.unwrap_err();
    assert!(error.contains("issuer did not match"), "{error}");
    let token = own.sign(&claims(&site)).unwrap();
    assert_eq!(
        issuer.user(&token, at(0)).await.unwrap_err(),
        "oidc: verify token: oidc: authenticator not initialized"
    );
}

#[tokio::test]
async fn claims_become_users_by_expressions_and_rules() {
    let (site, own) = (Site::start().await, key());
    publish(&site, &[&own]);
    let issuer = issuer(
        &site,
        json!({
            "claimMappings": {
                "username": { "expression": "claims.email_verified ? 'oidc:' + claims.email : ''" },
                "groups": { "expression": "dyn(claims.roles).map(r, 'oidc:' + r)" },
                "uid": { "claim": "sub" },
                "extra": [
                    { "key": "example.com/tenant", "valueExpression": "claims.?tenant.orValue('')" },
                ],
            },
            "claimValidationRules": [
                { "claim": "hd", "requiredValue": "example.com" },
                {
                    "expression": "claims.exp - claims.iat <= 3600",
                    "message": "tokens live for an hour at most",
                },
            ],
            "userValidationRules": [
                {
                    "expression": "!user.groups.exists(g, g.startsWith('system:'))",
                    "message": "no groups of the system",
                },
                { "expression": "user.username.matches('^oidc:[a-z]+@example[.]com$')" },
            ],
        }),
    )
    .await;
    let good = json!({
        "iss": site.url, "aud": ["x", "coracle"], "exp": NOW + 60, "iat": NOW, "sub": "7",
        "email": "jane@example.com", "email_verified": true, "roles": ["dev", ""],
        "hd": "example.com", "tenant": "blue",
    });
    let ask = |name: &'static str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        let token = own.sign(&claims).unwrap();
        let issuer = &issuer;
        async move { issuer.user(&token, at(0)).await }
    };
    let user = ask("x", json!(1)).await.unwrap();
    assert_eq!(
        (user.name.as_str(), user.uid.as_str()),
        ("oidc:jane@example.com", "7")
    );
    assert_eq!(user.groups, ["oidc:dev", "oidc:"]);
    assert_eq!(user.extra["example.com/tenant"], ["blue"]);
    let error = ask("email_verified", json!(false)).await.unwrap_err();
    assert_eq!(
        error,
        "oidc: empty username via CEL expression is not allowed"
    );
    refusals(ask).await;
}

/// What a claim that is changed makes of the token, in upstream's words.
async fn refusals<F>(ask: impl Fn(&'static str, Value) -> F)
where
    F: Future<Output = Result<User, String>>,
{
    let error = ask("hd", json!("other.org")).await.unwrap_err();
    assert_eq!(
        error,
        "oidc: required claim hd value does not match. Got = other.org, want = example.com"
    );
    let error = ask("iat", json!(NOW - 9000)).await.unwrap_err();
    assert_eq!(
        error,
        "oidc: error evaluating claim validation expression: validation expression 'claims.exp - \
         claims.iat <= 3600' failed: tokens live for an hour at most"
    );
    let error = ask("email", json!("jane@evil.org")).await.unwrap_err();
    assert!(
        error.starts_with("oidc: error evaluating user info validation rule"),
        "{error}"
    );
    let error = ask("roles", json!("dev")).await.unwrap_err();
    assert!(
        error.starts_with("oidc: error evaluating group claim expression"),
        "{error}"
    );
}

#[tokio::test]
async fn plain_claims_are_taken_with_their_prefix() {
    let (site, own) = (Site::start().await, key());
    publish(&site, &[&own]);
    let mappings = json!({ "claimMappings": {
        "username": { "claim": "email", "prefix": "" },
        "groups": { "claim": "groups", "prefix": "g:" },
    } });
    let issuer = issuer(&site, mappings).await;
    let ask = |change: Value| {
        let mut claims = claims(&site);
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let token = own.sign(&claims).unwrap();
        let issuer = &issuer;
        async move { issuer.user(&token, at(0)).await }
    };
    let user = ask(json!({ "email": "a@b", "groups": "dev" }))
        .await
        .unwrap();
    assert_eq!(
        (user.name.as_str(), user.groups.as_slice()),
        ("a@b", &["g:dev".to_owned()][..])
    );
    for (change, error) in [
        (
            json!({}),
            "oidc: parse username claims \"email\": claim not present",
        ),
        (
            json!({ "email": 7 }),
            "oidc: parse username claims \"email\": json: cannot unmarshal number into Go value \
             of type string",
        ),
        (
            json!({ "email": "a@b", "email_verified": false }),
            "oidc: email not verified",
        ),
        (
            json!({ "email": "a@b", "groups": [1] }),
            "oidc: parse groups claim \"groups\": json: cannot unmarshal number into Go value of \
             type string",
        ),
    ] {
        assert_eq!(ask(change).await.unwrap_err(), error);
    }
}

#[test]
fn an_expression_that_misses_a_claim_says_so_in_upstreams_words() {
    let expression = expression::Expression::compile("claims.sub", "claims", false).unwrap();
    assert_eq!(
        expression.string(&json!({})).unwrap_err(),
        "expression 'claims.sub' resulted in error: no such key: sub"
    );
}

/// What the server says that it can evaluate, it can.
#[test]
fn each_function_that_is_taken_can_be_evaluated() {
    for text in [
        "claims.s.size() == 2 && size(claims.l) == 2",
        "claims.s.contains('a') && claims.s.startsWith('a') && claims.s.endsWith('b')",
        "claims.s.matches('^a') && matches(claims.s, '^[^[]b$') && !'\u{663}'.matches(r'\\d')",
        "claims.s.charAt(0) == 'a' && claims.s.indexOf('b') == 1 && claims.s.lastIndexOf('b') == 1",
        "claims.s.lowerAscii() == 'ab' && claims.s.upperAscii() == 'AB'",
        "claims.s.trim() == 'ab' && claims.s.replace('a', 'c') == 'cb'",
        "claims.s.substring(1) == 'b' && ['a', 'b'].join('-') == 'a-b'",
        "claims.s.split('').size() == 2",
        "'%s'.format([claims.s]) == 'ab' && strings.quote('a') != 'a'",
        "string(1) == '1' && int('1') == 1 && uint(1) == 1u && double(1) == 1.0",
        "bytes('a') == b'a'",
        "bool('true')",
        "dyn(1) == 1 && type(1) == int",
        "claims.?x.orValue('y') == 'y' && !claims.?x.hasValue()",
        "optional.of(1).value() == 1 && !optional.none().hasValue()",
        "optional.ofNonZeroValue('').or(optional.of('a')).value() == 'a'",
        "[1, 1].distinct() == [1] && [[1], [2]].flatten() == [1, 2]",
        "[1, 2].slice(0, 1) == [1] && [2, 1].sort() == [1, 2] && [1, 2].reverse() == [2, 1]",
        "lists.range(2) == [0, 1] && [1, 2].sortBy(x, -x) == [2, 1]",
    ] {
        let claims = json!({ "s": "ab", "l": [1, 2] });
        let expression = expression::Expression::compile(text, "claims", true).unwrap();
        assert_eq!(expression.bool(&claims), Ok(Some(true)), "{text}");
    }
}

#[test]
fn evaluation_is_bounded_before_it_begins() {
    let text = "dyn(claims.a).all(x, dyn(claims.a).exists(y, y == x))";
    let expression = expression::Expression::compile(text, "claims", true).unwrap();
    let claims = |count: usize| json!({ "a": vec![1; count] });
    assert_eq!(expression.bool(&claims(100)), Ok(Some(true)));
    assert_eq!(
        expression.bool(&claims(2000)).unwrap_err(),
        format!(
            "expression '{text}' resulted in error: loops in loops over 2002 values and \
             characters take too long"
        )
    );
    let error =
        expression::Expression::compile("lists.range(1000000).all(x, x > 1)", "claims", true);
    assert_eq!(
        error.unwrap_err(),
        "compilation failed: this server evaluates 'lists.range' of small constants alone"
    );
}

#[test]
fn a_pattern_that_goes_wrong_is_told_in_gos_words() {
    let expression = expression::Expression::compile("'a'.matches(claims.p)", "claims", true);
    let error = expression
        .unwrap()
        .bool(&json!({ "p": "(?x)a" }))
        .unwrap_err();
    let why = "error parsing regexp: invalid or unsupported Perl syntax: `(?x`";
    assert!(error.ends_with(why), "{error}");
}

#[test]
fn an_expression_that_could_never_be_evaluated_is_not_taken() {
    let compile = |text: &str| expression::Expression::compile(text, "claims", true).err();
    for (text, name) in [
        ("sets.contains([1], [1])", "sets.contains"),
        ("claims.s.find('^a') == ''", "find"),
        ("isURL('x')", "isURL"),
        ("claims.?s.optMap(x, x).hasValue()", "optMap"),
        ("[1].all(i, v, i == v)", "all"),
        ("duration('1s') == duration('1s')", "duration"),
    ] {
        let error = format!("compilation failed: this server cannot evaluate '{name}'");
        assert_eq!(compile(text), Some(error), "{text}");
    }
    assert_eq!(
        compile("claims.s"),
        Some("must evaluate to bool".to_owned())
    );
    let wrong = compile("user.name == ''").unwrap();
    assert!(wrong.contains("undeclared reference to 'user'"), "{wrong}");
}

#[test]
fn an_expression_that_is_deep_is_evaluated() {
    let brackets = format!("{}true{}", "(".repeat(90), ")".repeat(90));
    let chain = format!("0{} == 950", " + 1".repeat(950));
    let loops = format!("{}true{}", "[1].all(x, ".repeat(60), ")".repeat(60));
    for text in [brackets, chain, loops] {
        let expression = expression::Expression::compile(&text, "claims", true).unwrap();
        assert_eq!(expression.bool(&json!({})), Ok(Some(true)));
    }
    let chain = format!("0{} == 1001", " + 1".repeat(1001));
    let why = expression::Expression::compile(&chain, "claims", true).unwrap_err();
    assert!(
        why.ends_with("too many operators: 1003, limit 1000"),
        "{why}"
    );
}
