//! What cannot be read is refused, in Go's words.

use super::*;
use crate::der::{BIT_STRING, element};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// By `openssl req`, of the name `n`: with a key of 2048 bits, SHA-256 and PSS.
const OF_PSS: &str = "\
    MIIChTCCATkCAQAwDDEKMAgGA1UEAwwBbjCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBAL4V\
    bExb2JmX26Vixo/4RyEa5DP9390OqR+06qvn7DfW2pGFW+22RapB6PXSshlnBEkMhsgZR8UOTdNStzws\
    cPd5/neSQt2ezKAnS2jL8qBcfi5l6WT8xLv5qsKWUD8RB6+omzJJOD/cuPzyU1CtkQsU/6QPp55VZayn\
    hWZw6qsqJRv8M5pCva/80JS2SdsBs2UB1gF8OtgvKvVHVjbLN1nZBSeJClaFSZsJMvoaU2Uq9S7+TJ/k\
    N9CBdn3sS9zgcU0FLxzKjgrSj1nC0+et3QgwSRcHe5CWF/z4rzGwDEVJIqMHUbRMdpH+K4z5OSGUPOVm\
    aQ9MCNjcs7Z/6Ec3d5ECAwEAAaAAMEEGCSqGSIb3DQEBCjA0oA8wDQYJYIZIAWUDBAIBBQChHDAaBgkq\
    hkiG9w0BAQgwDQYJYIZIAWUDBAIBBQCiAwIBIAOCAQEAkCqLNBcAaFY+CC3qx2wCdbxB+Fa3RqGIUm+0\
    r7eBDY5sp2EKOuSoyNVLr5y1580Wjqg54TtqMjvZk90ahSHlvpxm6F8GNpxByQhDMwl9d6p7ZjrKUi8t\
    UlsWoc7X40Csl3bsepbKtYPuadlTqlMP8mVCfyOMOpKPlqq6LFnKLRtHAFhqE5tmcVNQwSpHE2HREper\
    JhwZtr1ETbB9T1XF4TKDYiMSLyT8tlrKYJzrFUnlaHmPe3v2OZHIra2A4SroBT0d21t+/FKZpVjYMHw9\
    hfKzn8w7ZICcMpD5y0A2X8XCcr3qwKiGIt4eUxk76xpJ7FbikkbFdPPtHUGfLT+F1Q==";
/// With a key of 1024 bits.
const OF_1024: &str = "\
    MIIBSzCBtQIBADAMMQowCAYDVQQDDAFuMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDfBsncp33m\
    OZHM9L9ley4XjdswJdCyfIO2f0P/MurLhHnLd5Q/y91SCcHexgVkKnb/fW5A+x/e7lSn1eXf0JvKB0fY\
    udLkIhDG5/gJAmYfqxr8u3Vnthl+SIAUalI1NJHc1lBdlKxtxhZpMdw+bva0zkK20AvzkY70zu6YcfkD\
    MQIDAQABoAAwDQYJKoZIhvcNAQELBQADgYEAwYsGYR/m2tKOWhS08Q0OBkRXNEwVgb7h5FtRRUbZsLW9\
    VixAwb1iTjtfr5ZMaasbCvrxWj63kC1X6vzFUcUREJj4asdS54FSMOwFXVaBvNOnq9ekmKWzwjLlAQY2\
    gVkmIbO3z/O3fD2rlA4J+sbB9I+5YKtJ44PwdTlU6WUyrpo=";
/// With one of 512.
const OF_512: &str = "\
    MIHFMHECAQAwDDEKMAgGA1UEAwwBbjBcMA0GCSqGSIb3DQEBAQUAA0sAMEgCQQDQEdNTZJSZYh3HNGyD\
    sTjZ+qFh6R7U4HsvlW/ApXO0FpbrEz0MuahD+HfjENQdnh1HVKeZvJ1By7Rarar5MT6nAgMBAAGgADAN\
    BgkqhkiG9w0BAQsFAANBAIoPGlonysjjbXFZv99EZ2sGLWvCdwOVZDNvn1kjXBBXlPR0hxKnudDCYoe9\
    WLV27B4QuYEtbx5g4LqW6MI4pn4=";

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const SECP256K1: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x0a];

fn bytes(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

fn name(of: &[u8]) -> Vec<u8> {
    element(OBJECT_IDENTIFIER, of)
}

/// The same request with another key, algorithm or signature, as far as they are given.
fn with(request: &str, key: Option<&[u8]>, algorithm: Option<&[u8]>, signed: &[u8]) -> Vec<u8> {
    let request = bytes(request);
    let parts = der::within(SEQUENCE, &request).unwrap();
    let fields = der::all(parts[0].content).unwrap();
    let whole = |at: usize| fields[at].whole.to_vec();
    let key = key.map_or_else(|| whole(2), <[u8]>::to_vec);
    let algorithm = algorithm.unwrap_or(parts[1].whole).to_vec();
    let signed = element(BIT_STRING, signed);
    sequence(&[
        sequence(&[whole(0), whole(1), key, whole(3)]),
        algorithm,
        signed,
    ])
}

fn found(request: &[u8]) -> String {
    problem(request).unwrap_or_default()
}

#[test]
fn keys_of_rsa_by_their_length() {
    let changed = |request: &str| {
        let mut request = bytes(request);
        let at = request.windows(3).position(|three| three == b"\x0c\x01n");
        request[at.unwrap() + 2] = b'm';
        request
    };
    for request in [OF_PSS, OF_1024] {
        assert_eq!(found(&bytes(request)), "");
        let other = found(&changed(request));
        assert_eq!(other, "crypto/rsa: verification error");
    }
    assert_eq!(
        found(&bytes(OF_512)),
        "crypto/rsa: 512-bit keys are insecure (see \
         https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)"
    );
}

#[test]
fn a_signature_that_is_no_string_of_bits() {
    let check =
        |signed: &[u8], why: &str| assert_eq!(found(&with(OF_PSS, None, None, signed)), why);
    check(&[], "asn1: syntax error: zero length BIT STRING");
    let padding = "asn1: syntax error: invalid padding bits in BIT STRING";
    check(&[8, 0], padding);
    check(&[1], padding);
    check(&[1, 3], padding);
    let failed = "crypto/rsa: verification error";
    check(&[0], failed);
    check(&[1, 2], failed);
    assert_eq!(
        bits(&der::first(&[3, 3, 4, 0xab, 0xc0]).unwrap().0),
        Ok(vec![0x0a, 0xbc])
    );
}

#[test]
fn parameters_that_nobody_knows() {
    const UNKNOWN: &str = "x509: cannot verify signature: algorithm unimplemented";
    let digest = |last: u8| sequence(&[name(&[SHA2, &[last]].concat()), NULL.to_vec()]);
    let fields = |of_digest: Vec<u8>, of_mask: Vec<u8>, salt: u8, more: &[u8]| {
        let parts = [
            element(0xa0, &of_digest),
            element(0xa1, &sequence(&[name(MGF1), of_mask])),
            element(0xa2, &element(INTEGER, &[salt])),
            more.to_vec(),
        ];
        sequence(&[name(PSS), sequence(&parts)])
    };
    let check = |algorithm: Vec<u8>, why: &str| {
        assert_eq!(found(&with(OF_PSS, None, Some(&algorithm), &[0])), why);
    };
    let trailer = |value: u8| element(0xa3, &element(INTEGER, &[value]));
    let failed = "crypto/rsa: verification error";
    check(fields(digest(1), digest(1), 32, &[]), failed);
    check(fields(digest(2), digest(2), 48, &trailer(1)), failed);
    check(fields(digest(3), digest(3), 64, &[]), failed);
    check(fields(digest(4), digest(4), 28, &[]), UNKNOWN);
    check(fields(digest(1), digest(2), 32, &[]), UNKNOWN);
    check(fields(digest(1), digest(1), 20, &[]), UNKNOWN);
    check(fields(digest(1), digest(1), 32, &trailer(2)), UNKNOWN);
    check(sequence(&[name(PSS), sequence(&[])]), UNKNOWN);
    check(sequence(&[name(PSS), NULL.to_vec()]), UNKNOWN);
    check(sequence(&[name(PSS)]), UNKNOWN);
    let with_parameters = sequence(&[name(ED25519), NULL.to_vec()]);
    check(with_parameters, UNKNOWN);
    check(sequence(&[]), TRUNCATED);
    check(sequence(&[NULL.to_vec()]), OTHER_TAGS);
}

#[test]
fn keys_that_cannot_be_read() {
    let key = |algorithm: &[Vec<u8>], key: &[u8]| {
        sequence(&[sequence(algorithm), element(BIT_STRING, key)])
    };
    let check = |key: Vec<u8>, why: &str| {
        assert_eq!(found(&with(OF_PSS, Some(&key), None, &[0])), why);
    };
    check(sequence(&[]), TRUNCATED);
    check(
        sequence(&[name(RSA), element(BIT_STRING, &[0])]),
        OTHER_TAGS,
    );
    check(sequence(&[sequence(&[name(RSA)]), name(RSA)]), OTHER_TAGS);
    check(key(&[], &[0]), TRUNCATED);
    check(key(&[NULL.to_vec()], &[0]), OTHER_TAGS);
    check(
        key(&[name(RSA)], &[9]),
        "asn1: syntax error: invalid padding bits in BIT STRING",
    );
    check(
        key(&[name(RSA)], &[0]),
        "x509: RSA key missing NULL parameters",
    );
    let rsa = |of: &[u8]| key(&[name(RSA), NULL.to_vec()], &[&[0], of].concat());
    let pair = |modulus: &[u8], exponent: &[u8]| {
        rsa(&sequence(&[
            element(INTEGER, modulus),
            element(INTEGER, exponent),
        ]))
    };
    check(rsa(&[]), "x509: invalid RSA public key");
    check(rsa(NULL), "x509: invalid RSA public key");
    check(rsa(&sequence(&[])), "x509: invalid RSA modulus");
    check(pair(&[0, 1], &[3]), "x509: invalid RSA modulus");
    let one = sequence(&[element(INTEGER, &[1])]);
    check(rsa(&one), "x509: invalid RSA public exponent");
    check(pair(&[1], &[1; 9]), "x509: invalid RSA public exponent");
    check(
        pair(&[0], &[3]),
        "x509: RSA modulus is not a positive number",
    );
    check(
        pair(&[0x80], &[3]),
        "x509: RSA modulus is not a positive number",
    );
    check(
        pair(&[1], &[0]),
        "x509: RSA public exponent is not a positive number",
    );
    let ec = |curve: &[u8], point: &[u8]| key(&[name(EC), name(curve)], &[&[0], point].concat());
    check(key(&[name(EC)], &[0]), "x509: invalid ECDSA parameters");
    check(ec(SECP256K1, &[4; 65]), "x509: unsupported elliptic curve");
    let point = "x509: failed to unmarshal elliptic curve point";
    check(ec(P256, &[4; 64]), point);
    check(ec(P256, &[2; 33]), point);
    let ed = |key: &[u8]| [&[0], key].concat();
    check(
        key(&[name(ED25519), NULL.to_vec()], &ed(&[1; 32])),
        "x509: Ed25519 key encoded with illegal parameters",
    );
    check(
        key(&[name(ED25519)], &ed(&[1; 31])),
        "x509: wrong Ed25519 public key size",
    );
}
