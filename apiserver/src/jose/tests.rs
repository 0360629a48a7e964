//! Keys of each kind sign and check, in each form in which they are written down.

use super::*;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};
use serde_json::json;

/// RSA keys cannot be made by ring; these were made by OpenSSL 3 for these tests alone.
const RSA_PKCS8: &str = include_str!("tests/rsa.key");
const RSA_PKCS1: &str = include_str!("tests/rsa-pkcs1.key");
const RSA_PUBLIC: &str = include_str!("tests/rsa.pub");
const RSA_PUBLIC_PKCS1: &str = include_str!("tests/rsa-pkcs1.pub");
const EC_SEC1: &str = include_str!("tests/ec-sec1.key");
const EC_PUBLIC: &str = include_str!("tests/ec.pub");

fn signing_keys() -> Vec<SigningKey> {
    let made = [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384]
        .map(|kind| KeyPair::generate_for(kind).unwrap().serialize_pem());
    [made[0].as_str(), &made[1], RSA_PKCS8, RSA_PKCS1, EC_SEC1]
        .map(|pem| SigningKey::from_pem(pem.as_bytes()).unwrap())
        .into()
}

#[test]
fn what_a_key_signs_it_checks_and_no_other_does() {
    let keys = signing_keys();
    let claims = json!({ "iss": "me", "sub": "you" });
    for (at, key) in keys.iter().enumerate() {
        let token = key.sign(&claims).unwrap();
        assert_eq!(issuer(&token).as_deref(), Some("me"));
        let parsed = Unverified::parse(&token).unwrap();
        let check = |keys: &[PublicKey]| parsed.verify(keys).cloned();
        assert_eq!(check(&[key.public().clone()]), Ok(claims.clone()), "{at}");
        let again = PublicKey::from_jwk(&key.public().to_jwk()).unwrap();
        assert_eq!(&again, key.public());
        let others = keys.iter().filter(|other| other.public() != key.public());
        let others: Vec<PublicKey> = others.map(|other| other.public().clone()).collect();
        assert_eq!(check(&others), Err(SignatureError::UnknownKey));
        let unnamed = Unverified {
            key_id: String::new(),
            ..Unverified::parse(&token).unwrap()
        };
        assert_eq!(unnamed.verify(&others), Err(SignatureError::Wrong));
    }
}

#[test]
fn a_key_is_the_same_in_each_form() {
    let rsa = SigningKey::from_pem(RSA_PKCS8.as_bytes()).unwrap();
    for text in [RSA_PKCS8, RSA_PKCS1, RSA_PUBLIC, RSA_PUBLIC_PKCS1] {
        let keys = PublicKey::from_pem(text.as_bytes());
        assert_eq!(keys.as_slice(), [rsa.public().clone()], "{text}");
    }
    let both = format!("{EC_PUBLIC}\n{EC_SEC1}\n{RSA_PUBLIC}");
    let keys = PublicKey::from_pem(both.as_bytes());
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0], keys[1]);
    assert!(PublicKey::from_pem(b"nonsense").is_empty());
    assert!(SigningKey::from_pem(RSA_PUBLIC.as_bytes()).is_none());
}

/// The id is what `openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64` says.
#[test]
fn a_key_is_named_by_the_hash_of_its_public_half() {
    let key = &PublicKey::from_pem(RSA_PUBLIC.as_bytes())[0];
    assert_eq!(key.id(), include_str!("tests/rsa.kid").trim());
    assert_eq!(key.algorithm(), Algorithm::Rs256);
    let jwk = key.to_jwk();
    assert_eq!((&jwk["kty"], &jwk["e"]), (&"RSA".into(), &"AQAB".into()));
}

/// Signed by OpenSSL with the RSA key, over what its header names.
#[test]
fn other_algorithms_of_rsa_are_checked_too() {
    let key = &PublicKey::from_pem(RSA_PUBLIC.as_bytes())[0];
    let tokens = include_str!("tests/rsa-tokens.txt");
    let mut seen = Vec::new();
    for token in tokens.lines() {
        let unverified = Unverified::parse(token).unwrap();
        let algorithm = unverified.algorithm.clone();
        assert!(unverified.verify([key]).is_ok(), "{algorithm}");
        let (rest, signature) = token.rsplit_once('.').unwrap();
        let other = if signature.starts_with('A') { "B" } else { "A" };
        let changed = format!("{rest}.{other}{}", &signature[1..]);
        let changed = Unverified::parse(&changed).unwrap();
        assert_eq!(changed.verify([key]), Err(SignatureError::Wrong));
        seen.push(algorithm);
    }
    assert_eq!(seen, ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]);
}

#[test]
fn keys_of_other_kinds_are_left_out() {
    for jwk in [
        json!({ "kty": "oct", "k": "c2VjcmV0" }),
        json!({ "kty": "EC", "crv": "P-521", "x": "AA", "y": "AA" }),
        json!({ "kty": "RSA", "n": "!", "e": "AQAB" }),
        json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "enc" }),
        json!({}),
    ] {
        assert_eq!(PublicKey::from_jwk(&jwk), None, "{jwk}");
    }
}

#[test]
fn what_is_no_token_is_malformed() {
    for text in ["", "a", "a.b", "a.b.c", "e30.e30", "e30.e30.!"] {
        let parsed = Unverified::parse(text).map(|_| ());
        assert_eq!(parsed, Err(SignatureError::Malformed), "{text}");
    }
}
