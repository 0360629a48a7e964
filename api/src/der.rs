//! The Distinguished Encoding Rules (X.690), as far as certificates and keys need them: elements of
//! a tag, a length and a content, taken apart and put together.
//!
//! Used where the libraries for certificates stop short: names with several organizations, keys
//! and signatures in another wrapping. Knows no schema; a length that does not fit is `None`.

use pem::{EncodeConfig, LineEnding, Pem};

pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const UTF8_STRING: u8 = 0x0c;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;
/// The explicit version of a certificate.
const VERSION: u8 = 0xa0;

/// `id-at-commonName` and `id-at-organizationName`, encoded.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// One element: what is in it, and all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    pub whole: &'a [u8],
}

/// Puts a tag and a length before a content.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut whole = vec![tag];
    let length = content.len();
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => whole.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let skipped = bytes.iter().take_while(|byte| **byte == 0).count();
            let bytes = &bytes[skipped..];
            whole.push(0x80 | bytes.len() as u8);
            whole.extend_from_slice(bytes);
        }
    }
    whole.extend_from_slice(content);
    whole
}

/// The first element and what comes after it.
pub fn first(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&length, mut rest) = rest.split_first()?;
    let length = if length < 0x80 {
        usize::from(length)
    } else {
        let count = usize::from(length & 0x7f);
        if count == 0 || count > size_of::<u32>() {
            return None;
        }
        let (digits, after) = rest.split_at_checked(count)?;
        rest = after;
        let fold = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
        digits.iter().fold(0, fold)
    };
    let (content, after) = rest.split_at_checked(length)?;
    let whole = &bytes[..bytes.len() - after.len()];
    let element = Element {
        tag,
        content,
        whole,
    };
    Some((element, after))
}

/// All elements of a content, one after the other.
pub fn all(mut bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut elements = Vec::new();
    while !bytes.is_empty() {
        let (element, after) = first(bytes)?;
        elements.push(element);
        bytes = after;
    }
    Some(elements)
}

/// The elements of a single element with this tag.
pub fn within(tag: u8, bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let (outer, after) = first(bytes)?;
    (outer.tag == tag && after.is_empty()).then(|| all(outer.content))?
}

/// A certificate as text (RFC 7468).
pub fn certificate_pem(certificate: &[u8]) -> String {
    let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
    pem::encode_config(&Pem::new("CERTIFICATE", certificate), config)
}

/// A distinguished name: organizations, then the common name (RFC 5280, 4.1.2.4).
pub fn name(common_name: &str, organizations: &[&str]) -> Vec<u8> {
    let attribute = |kind: &[u8], value: &str| {
        let pair = [
            element(OBJECT_IDENTIFIER, kind),
            element(UTF8_STRING, value.as_bytes()),
        ];
        element(SET, &element(SEQUENCE, &pair.concat()))
    };
    let mut parts: Vec<u8> = organizations
        .iter()
        .flat_map(|value| attribute(ORGANIZATION, value))
        .collect();
    parts.extend(attribute(COMMON_NAME, common_name));
    element(SEQUENCE, &parts)
}

/// What is signed of a certificate, with another subject in the place of its own.
pub fn with_subject(certificate: &[u8], subject: &[u8]) -> Option<Vec<u8>> {
    let signed = within(SEQUENCE, certificate)?;
    let fields = all(signed.first()?.content)?;
    let has_version = fields.first()?.tag == VERSION;
    // Version, serial number, algorithm, issuer, validity, subject, key, extensions.
    let place = if has_version { 5 } else { 4 };
    fields.get(place)?;
    let fields = fields.iter().enumerate();
    let parts = fields.map(|(at, field)| if at == place { subject } else { field.whole });
    Some(element(SEQUENCE, &parts.collect::<Vec<_>>().concat()))
}

/// A certificate of what is signed, with the algorithm of another certificate.
pub fn signed(to_be_signed: &[u8], like: &[u8], signature: &[u8]) -> Option<Vec<u8>> {
    let algorithm = within(SEQUENCE, like)?.get(1)?.whole;
    // No unused bits in the last byte.
    let bits = [&[0], signature].concat();
    let parts = [
        to_be_signed.to_vec(),
        algorithm.to_vec(),
        element(BIT_STRING, &bits),
    ];
    Some(element(SEQUENCE, &parts.concat()))
}

/// An ECDSA signature of two integers as the two halves of JSON Web Signatures (RFC 7518, 3.4).
pub fn fixed_signature(signature: &[u8], half_bytes: usize) -> Option<Vec<u8>> {
    let mut fixed = Vec::with_capacity(2 * half_bytes);
    for integer in within(SEQUENCE, signature)? {
        let zeros = integer.content.iter().take_while(|byte| **byte == 0);
        let digits = &integer.content[zeros.count()..];
        let padding = half_bytes.checked_sub(digits.len())?;
        fixed.extend(std::iter::repeat_n(0, padding));
        fixed.extend_from_slice(digits);
    }
    (fixed.len() == 2 * half_bytes).then_some(fixed)
}

#[cfg(test)]
mod tests;
