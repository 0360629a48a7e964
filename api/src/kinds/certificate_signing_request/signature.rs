//! Whether a request is signed by the key that it carries (RFC 2986), told in Go's words.
//!
//! What nobody here can check passes, and the signer decides: curves but P-256 and P-384, digests
//! longer than those, SHA-1 with either, short keys of RSA.

use crate::der::{self, Element, SEQUENCE};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use std::ops::RangeInclusive;

const UNKNOWN: &str = "x509: cannot verify signature: algorithm unimplemented";

const RSA_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
/// Before the byte that says which digest.
const RSA_SIGNATURE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const EC_SIGNATURE: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
const EC_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];

/// Keys of 2048 to 8192 bits, with their exponent, and for most digests of 1024 bits.
const RSA_BYTES: RangeInclusive<usize> = 268..=1040;
const SHORT_RSA_BYTES: RangeInclusive<usize> = 138..=1040;

/// How a request is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signature {
    RsaMd5,
    RsaSha1,
    RsaSha256,
    RsaSha384,
    RsaSha512,
    /// Its digest is in its parameters.
    RsaPss,
    EcSha1,
    EcSha256,
    EcSha384,
    EcSha512,
    Ed25519,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Rsa,
    P256,
    P384,
    /// On another curve.
    Ec,
    Ed25519,
}

/// Why the signature does not hold; the request is of the right form.
pub fn problem(request: &[u8]) -> Option<String> {
    let parts = der::within(SEQUENCE, request)?;
    let [asked, algorithm, signature] = &parts[..] else {
        return None;
    };
    let fields = der::all(asked.content)?;
    let info = der::all(fields.get(2)?.content)?;
    let key = info.get(1).and_then(bits);
    let (Some(kind), Some(key)) = (info.first().and_then(kind), key) else {
        return Some(UNKNOWN.to_owned());
    };
    let Some(signed_by) = identifier(algorithm).and_then(method) else {
        return Some(UNKNOWN.to_owned());
    };
    if signed_by == Signature::RsaMd5 {
        return Some("x509: cannot verify signature: insecure algorithm MD5-RSA".to_owned());
    }
    let (expected, found) = (signed_by.key(), kind.go_type());
    if expected != kind.family() {
        return Some(format!(
            "x509: signature algorithm specifies an {expected} public key, but have public key of \
             type {found}"
        ));
    }
    let algorithm = verification(kind, signed_by, algorithm)?;
    let lengths = match signed_by {
        Signature::RsaSha384 | Signature::RsaPss => RSA_BYTES,
        _ => SHORT_RSA_BYTES,
    };
    if kind == Key::Rsa && !lengths.contains(&key.len()) {
        return None;
    }
    let key = UnparsedPublicKey::new(algorithm, key);
    let holds = key.verify(asked.whole, bits(signature)?).is_ok();
    let why = match expected {
        "RSA" => "crypto/rsa: verification error",
        "ECDSA" => "x509: ECDSA verification failure",
        _ => "x509: Ed25519 verification failure",
    };
    (!holds).then(|| why.to_owned())
}

impl Signature {
    fn key(self) -> &'static str {
        match self {
            Self::EcSha1 | Self::EcSha256 | Self::EcSha384 | Self::EcSha512 => "ECDSA",
            Self::Ed25519 => "Ed25519",
            _ => "RSA",
        }
    }
}

impl Key {
    fn family(self) -> &'static str {
        match self {
            Self::Rsa => "RSA",
            Self::P256 | Self::P384 | Self::Ec => "ECDSA",
            Self::Ed25519 => "Ed25519",
        }
    }

    fn go_type(self) -> &'static str {
        match self {
            Self::Rsa => "*rsa.PublicKey",
            Self::P256 | Self::P384 | Self::Ec => "*ecdsa.PublicKey",
            Self::Ed25519 => "ed25519.PublicKey",
        }
    }
}

/// The content of a bit string that ends with a byte.
fn bits<'a>(element: &Element<'a>) -> Option<&'a [u8]> {
    element.content.strip_prefix(&[0])
}

/// Of an algorithm.
fn identifier<'a>(algorithm: &Element<'a>) -> Option<&'a [u8]> {
    Some(der::first(algorithm.content)?.0.content)
}

fn kind(algorithm: &Element<'_>) -> Option<Key> {
    let parts = der::all(algorithm.content)?;
    let curve = parts.get(1).map(|curve| curve.content);
    Some(match parts.first()?.content {
        RSA_KEY => Key::Rsa,
        ED25519 => Key::Ed25519,
        EC_KEY if curve == Some(P256) => Key::P256,
        EC_KEY if curve == Some(P384) => Key::P384,
        EC_KEY => Key::Ec,
        _ => return None,
    })
}

fn method(identifier: &[u8]) -> Option<Signature> {
    if identifier == ED25519 {
        return Some(Signature::Ed25519);
    }
    if identifier == EC_SHA1 {
        return Some(Signature::EcSha1);
    }
    let of_rsa = identifier.strip_prefix(RSA_SIGNATURE);
    let of_ec = identifier.strip_prefix(EC_SIGNATURE);
    Some(match (of_rsa, of_ec) {
        (Some([4]), _) => Signature::RsaMd5,
        (Some([5]), _) => Signature::RsaSha1,
        (Some([10]), _) => Signature::RsaPss,
        (Some([11]), _) => Signature::RsaSha256,
        (Some([12]), _) => Signature::RsaSha384,
        (Some([13]), _) => Signature::RsaSha512,
        (_, Some([2])) => Signature::EcSha256,
        (_, Some([3])) => Signature::EcSha384,
        (_, Some([4])) => Signature::EcSha512,
        _ => return None,
    })
}

/// `None` for what cannot be checked here.
fn verification(
    key: Key,
    signed_by: Signature,
    algorithm: &Element<'_>,
) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match (key, signed_by) {
        (_, Signature::RsaSha1) => &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        (_, Signature::RsaSha256) => &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
        (_, Signature::RsaSha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
        (_, Signature::RsaSha512) => &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        (_, Signature::RsaPss) => return pss(algorithm),
        (Key::P256, Signature::EcSha256) => &signature::ECDSA_P256_SHA256_ASN1,
        (Key::P256, Signature::EcSha384) => &signature::ECDSA_P256_SHA384_ASN1,
        (Key::P384, Signature::EcSha256) => &signature::ECDSA_P384_SHA256_ASN1,
        (Key::P384, Signature::EcSha384) => &signature::ECDSA_P384_SHA384_ASN1,
        (Key::Ed25519, Signature::Ed25519) => &signature::ED25519,
        _ => return None,
    })
}

/// By the digest in the parameters (RFC 4055), the last byte of whose name differs.
fn pss(algorithm: &Element<'_>) -> Option<&'static dyn VerificationAlgorithm> {
    const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
    const DIGEST: u8 = 0xa0;
    let parameters = *der::all(algorithm.content)?.get(1)?;
    let all = der::all(parameters.content)?;
    let digest = all.iter().find(|one| one.tag == DIGEST)?;
    let digest = identifier(&der::first(digest.content)?.0)?;
    Some(match digest.strip_prefix(SHA2)? {
        [1] => &signature::RSA_PSS_2048_8192_SHA256,
        [2] => &signature::RSA_PSS_2048_8192_SHA384,
        [3] => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}
