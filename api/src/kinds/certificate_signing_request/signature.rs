//! Whether a request is signed by the key that it carries (RFC 2986), told in Go's words.
//!
//! What cannot be read is refused. What can be read and nobody here can check passes, and the
//! signer decides: curves but P-256 and P-384, digests longer than those, SHA-1 with either, keys
//! of RSA of more than 8192 bits, and of less than 2048 with SHA-384 or PSS.

mod key; // That a request carries.

use crate::der::{self, Element, INTEGER, OBJECT_IDENTIFIER, SEQUENCE};
use key::{Kind, PublicKey};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use std::ops::RangeInclusive;

pub const TRUNCATED: &str = "asn1: syntax error: sequence truncated";
pub const OTHER_TAGS: &str = "asn1: structure error: tags don't match";
const UNKNOWN: &str = "x509: cannot verify signature: algorithm unimplemented";

const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// Before the byte that says which digest.
const RSA_SIGNATURE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const EC_SIGNATURE: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
const EC_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
const MGF1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x08];
/// A whole element.
const NULL: &[u8] = &[0x05, 0x00];

/// Of keys that are checked here, and for most digests.
const RSA_BITS: RangeInclusive<usize> = 2048..=8192;
const SHORT_RSA_BITS: RangeInclusive<usize> = 1024..=8192;

/// How a request is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signature {
    RsaMd5,
    RsaSha1,
    RsaSha256,
    RsaSha384,
    RsaSha512,
    PssSha256,
    PssSha384,
    PssSha512,
    EcSha1,
    EcSha256,
    EcSha384,
    EcSha512,
    Ed25519,
}

/// An identifier of an algorithm.
#[derive(Clone, Copy, Debug)]
struct Algorithm<'a> {
    name: &'a [u8],
    parameters: Option<Element<'a>>,
}

/// Why the signature does not hold, or that there is none; the request is of the right form.
pub fn problem(request: &[u8]) -> Option<String> {
    check(request).err()
}

fn check(request: &[u8]) -> Result<(), String> {
    let parts = der::within(SEQUENCE, request).ok_or(TRUNCATED)?;
    let [asked, algorithm, signature] = &parts[..] else {
        return Err(TRUNCATED.to_owned());
    };
    let fields = der::all(asked.content).ok_or(TRUNCATED)?;
    let key = key::read(fields.get(2).ok_or(TRUNCATED)?);
    let algorithm = Algorithm::read(algorithm)?;
    let signature = bits(signature)?;
    let (Some(key), Some(signed_by)) = (key?, method(&algorithm)) else {
        return Err(UNKNOWN.to_owned());
    };
    if signed_by == Signature::RsaMd5 {
        return Err("x509: cannot verify signature: insecure algorithm MD5-RSA".to_owned());
    }
    let (expected, found) = (signed_by.key(), key.kind.go_type());
    if expected != key.kind.family() {
        return Err(format!(
            "x509: signature algorithm specifies an {expected} public key, but have public key of \
             type {found}"
        ));
    }
    verify(&key, signed_by, asked.whole, &signature)
}

fn verify(
    key: &PublicKey,
    signed_by: Signature,
    signed: &[u8],
    signature: &[u8],
) -> Result<(), String> {
    if let Kind::Rsa { bits } = key.kind {
        if bits < *SHORT_RSA_BITS.start() {
            return Err(format!(
                "crypto/rsa: {bits}-bit keys are insecure (see \
                 https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)"
            ));
        }
        let are_checked = match signed_by {
            Signature::RsaSha1 | Signature::RsaSha256 | Signature::RsaSha512 => SHORT_RSA_BITS,
            _ => RSA_BITS,
        };
        if !are_checked.contains(&bits.next_multiple_of(8)) {
            return Ok(());
        }
    }
    let Some(algorithm) = verification(key.kind, signed_by) else {
        return Ok(());
    };
    let why = match key.kind.family() {
        "RSA" => "crypto/rsa: verification error",
        "ECDSA" => "x509: ECDSA verification failure",
        _ => "x509: Ed25519 verification failure",
    };
    let key = UnparsedPublicKey::new(algorithm, &key.bytes);
    let verified = key.verify(signed, signature);
    verified.map_err(|_| why.to_owned())
}

impl<'a> Algorithm<'a> {
    fn read(element: &Element<'a>) -> Result<Self, &'static str> {
        if element.tag != SEQUENCE {
            return Err(OTHER_TAGS);
        }
        let parts = der::all(element.content).ok_or(TRUNCATED)?;
        let name = parts.first().ok_or(TRUNCATED)?;
        if name.tag != OBJECT_IDENTIFIER {
            return Err(OTHER_TAGS);
        }
        Ok(Self {
            name: name.content,
            parameters: parts.get(1).copied(),
        })
    }
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

/// A string of bits, as if those that its last byte does not use came first.
fn bits(element: &Element<'_>) -> Result<Vec<u8>, &'static str> {
    let (&unused, bytes) = element
        .content
        .split_first()
        .ok_or("asn1: syntax error: zero length BIT STRING")?;
    let last = bytes.last().copied();
    let is_padded = |last: u8| unused < 8 && last.trailing_zeros() >= u32::from(unused);
    if !last.map_or(unused == 0, is_padded) {
        return Err("asn1: syntax error: invalid padding bits in BIT STRING");
    }
    let before = std::iter::once(0).chain(bytes.iter().copied());
    let pairs = before.zip(bytes);
    let shifted = |(high, low): (u8, &u8)| u16::from_be_bytes([high, *low]) >> unused;
    Ok(pairs.map(|pair| shifted(pair).to_be_bytes()[1]).collect())
}

/// `None` for one that Go does not know.
fn method(algorithm: &Algorithm<'_>) -> Option<Signature> {
    match algorithm.name {
        ED25519 if algorithm.parameters.is_none() => return Some(Signature::Ed25519),
        EC_SHA1 => return Some(Signature::EcSha1),
        _ => {}
    }
    let of_rsa = algorithm.name.strip_prefix(RSA_SIGNATURE);
    let of_ec = algorithm.name.strip_prefix(EC_SIGNATURE);
    Some(match (of_rsa, of_ec) {
        (Some([4]), _) => Signature::RsaMd5,
        (Some([5]), _) => Signature::RsaSha1,
        (Some([10]), _) => return pss(algorithm.parameters.as_ref()?),
        (Some([11]), _) => Signature::RsaSha256,
        (Some([12]), _) => Signature::RsaSha384,
        (Some([13]), _) => Signature::RsaSha512,
        (_, Some([2])) => Signature::EcSha256,
        (_, Some([3])) => Signature::EcSha384,
        (_, Some([4])) => Signature::EcSha512,
        _ => return None,
    })
}

/// By parameters (RFC 4055), as far as Go knows any: of one digest, with a salt as long as it.
fn pss(parameters: &Element<'_>) -> Option<Signature> {
    const FIELDS: [u8; 4] = [0xa0, 0xa1, 0xa2, 0xa3];
    let fields = der::within(SEQUENCE, parameters.whole)?;
    let field = |index: usize| -> Option<Element<'_>> {
        let field = fields.get(index).filter(|it| it.tag == FIELDS[index])?;
        Some(der::first(field.content)?.0)
    };
    let [digest, mask] = [Algorithm::read(&field(0)?), Algorithm::read(&field(1)?)];
    let (digest, mask) = (digest.ok()?, mask.ok()?);
    let of_mask = Algorithm::read(mask.parameters.as_ref()?).ok()?;
    let salt = field(2).filter(|salt| salt.tag == INTEGER)?;
    let is_plain = |digest: &Algorithm<'_>| {
        let parameters = digest.parameters;
        parameters.is_none_or(|parameters| parameters.whole == NULL)
    };
    let has_usual_trailer = fields.len() < 4 || field(3)?.whole == [INTEGER, 1, 1];
    if mask.name != MGF1
        || of_mask.name != digest.name
        || !is_plain(&digest)
        || !is_plain(&of_mask)
        || !has_usual_trailer
    {
        return None;
    }
    Some(match (digest.name.strip_prefix(SHA2)?, salt.content) {
        ([1], [32]) => Signature::PssSha256,
        ([2], [48]) => Signature::PssSha384,
        ([3], [64]) => Signature::PssSha512,
        _ => return None,
    })
}

/// `None` for what cannot be checked here.
fn verification(key: Kind, signed_by: Signature) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match (key, signed_by) {
        (_, Signature::RsaSha1) => &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
        (_, Signature::RsaSha256) => &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
        (_, Signature::RsaSha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
        (_, Signature::RsaSha512) => &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        (_, Signature::PssSha256) => &signature::RSA_PSS_2048_8192_SHA256,
        (_, Signature::PssSha384) => &signature::RSA_PSS_2048_8192_SHA384,
        (_, Signature::PssSha512) => &signature::RSA_PSS_2048_8192_SHA512,
        (Kind::P256, Signature::EcSha256) => &signature::ECDSA_P256_SHA256_ASN1,
        (Kind::P256, Signature::EcSha384) => &signature::ECDSA_P256_SHA384_ASN1,
        (Kind::P384, Signature::EcSha256) => &signature::ECDSA_P384_SHA256_ASN1,
        (Kind::P384, Signature::EcSha384) => &signature::ECDSA_P384_SHA384_ASN1,
        (Kind::Ed25519, Signature::Ed25519) => &signature::ED25519,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
