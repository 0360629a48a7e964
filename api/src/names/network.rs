//! Names and numbers of the network: ports, addresses, ranges, search domains, headers.

use super::{
    SUBDOMAIN_BYTES_MAX, between, is_lower_alphanumeric, matches_subdomain, max_length_error,
    pattern_error,
};
use crate::field::Path;
use std::net::IpAddr;

/// The name of a port: an IANA service name.
pub fn port_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let bytes = text.as_bytes();
    if text.len() > 15 {
        errors.push("must be no more than 15 characters".to_owned());
    }
    if bytes.is_empty()
        || !bytes
            .iter()
            .all(|b| is_lower_alphanumeric(*b) || *b == b'-')
    {
        errors.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !bytes.iter().any(u8::is_ascii_lowercase) {
        errors.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        errors.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        errors.push("must not begin or end with a hyphen".to_owned());
    }
    errors
}

/// The number of a port.
pub fn port_number(port: i64) -> Vec<String> {
    between(port, 1, 65_535)
}

/// The address without leading zeros in its numbers, which some read as octal.
fn without_leading_zeros(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(['.', ':', '/']) {
        let number = part.trim_end_matches(['.', ':', '/']);
        out.push_str(match number.trim_start_matches('0') {
            "" if !number.is_empty() => "0",
            rest => rest,
        });
        out.push_str(&part[number.len()..]);
    }
    out
}

/// An address with or without leading zeros, of any kind.
pub fn sloppy_ip(text: &str) -> Option<IpAddr> {
    without_leading_zeros(text).parse().ok()
}

/// Whether it is a range with or without leading zeros, and with or without bits beyond it.
pub fn is_sloppy_range(text: &str) -> bool {
    parse_range(&without_leading_zeros(text)).is_some()
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// An IPv4 or IPv6 address.
pub fn ip(text: &str) -> Vec<String> {
    let detail = match text.parse::<IpAddr>() {
        Ok(ip) if is_mapped(ip) => "must not be an IPv4-mapped IPv6 address",
        Ok(_) => return Vec::new(),
        Err(_) if sloppy_ip(text).is_some() => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    vec![detail.to_owned()]
}

/// An address in the one form that upstream writes it in.
pub fn canonical_ip(text: &str) -> Vec<String> {
    let errors = ip(text);
    match text.parse::<IpAddr>() {
        Ok(ip) if errors.is_empty() => not_canonical(text, &ip.to_string()),
        _ => errors,
    }
}

/// A range in the one form that upstream writes it in.
pub fn canonical_cidr(text: &str) -> Vec<String> {
    let errors = cidr(text);
    match in_canonical_range(text) {
        Some(canonical) if errors.is_empty() => not_canonical(text, &canonical),
        _ => errors,
    }
}

/// A range as upstream writes it; `None` for what is none.
pub fn in_canonical_range(text: &str) -> Option<String> {
    let (ip, bits) = parse_range(text)?;
    Some(format!("{ip}/{bits}"))
}

fn not_canonical(text: &str, canonical: &str) -> Vec<String> {
    if text == canonical {
        Vec::new()
    } else {
        vec![format!("must be in canonical form ({canonical:?})")]
    }
}

/// A subdomain of which the first part is a star: `*.example.com`.
pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    const RULE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid \
                        DNS subdomain, which must consist of lower case alphanumeric characters, \
                        '-' or '.' and end with an alphanumeric character";
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        errors.push(max_length_error(SUBDOMAIN_BYTES_MAX));
    }
    if !text.strip_prefix("*.").is_some_and(matches_subdomain) {
        let pattern = format!("\\*\\.{}", super::SUBDOMAIN_PATTERN);
        errors.push(pattern_error(RULE, &pattern, &["*.example.com"]));
    }
    errors
}

/// An address range: `10.9.8.0/24`.
pub fn cidr(text: &str) -> Vec<String> {
    let Some((address, bits)) = parse_range(text) else {
        let detail = if is_sloppy_range(text) {
            "must not have leading 0s in IP or prefix length"
        } else {
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        };
        return vec![detail.to_owned()];
    };
    let beyond = match address {
        IpAddr::V4(ip) => u32::from(ip).checked_shl(bits).unwrap_or(0) != 0,
        IpAddr::V6(ip) => u128::from(ip).checked_shl(bits).unwrap_or(0) != 0,
    };
    let detail = if is_mapped(address) {
        "must not have an IPv4-mapped IPv6 address"
    } else if beyond {
        "must not have bits set beyond the prefix length"
    } else {
        return Vec::new();
    };
    vec![detail.to_owned()]
}

/// The address of an interface, with the length of its network: `10.9.8.7/24`.
pub fn interface_address(text: &str) -> Vec<String> {
    match in_canonical_range(text) {
        Some(canonical) => not_canonical(text, &canonical),
        None => vec![
            "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".to_owned(),
        ],
    }
}

/// The warning for an address that is read, and is not in the form in which it is written.
pub fn non_standard_ip(text: &str, path: &Path) -> Option<String> {
    match text.parse::<IpAddr>() {
        Ok(ip) if !is_mapped(ip) => (ip.is_ipv6() && ip.to_string() != text).then(|| {
            format!(
                "{path}: IPv6 address \"{text}\" should be in RFC 5952 canonical format \
                 (\"{ip}\")"
            )
        }),
        parsed => {
            let ip = parsed.or_else(|_| without_leading_zeros(text).parse::<IpAddr>());
            let ip = ip.ok()?.to_canonical();
            Some(format!(
                "{path}: non-standard IP address \"{text}\" is invalid: use \"{ip}\""
            ))
        }
    }
}

/// As `non_standard_ip`, for a range.
pub fn non_standard_range(text: &str, path: &Path) -> Option<String> {
    let canonical = in_canonical_range(text)?;
    let is_v6 = text.contains(':');
    (is_v6 && canonical != text).then(|| {
        format!(
            "{path}: IPv6 CIDR value \"{text}\" should be in RFC 5952 canonical format \
             (\"{canonical}\")"
        )
    })
}

fn parse_range(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let plain = bits == "0" || !bits.starts_with(['0', '+']);
    let bits: u32 = bits.parse().ok()?;
    (plain && bits <= bits_max).then_some((address, bits))
}

/// The name of an HTTP header.
pub fn http_header(text: &str) -> Vec<String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !text.is_empty() && text.bytes().all(good) {
        return Vec::new();
    }
    let rule = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern_error(rule, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// A search domain: as a subdomain, whose parts may begin with an underscore and have some inside.
pub fn dns_subdomain_with_underscore(text: &str) -> Vec<String> {
    const RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                        characters, '_', '-' or '.', and must start and end with an \
                        alphanumeric character";
    const PATTERN: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        errors.push(max_length_error(SUBDOMAIN_BYTES_MAX));
    }
    let good = |part: &str| {
        let bytes = part.strip_prefix('_').unwrap_or(part).as_bytes();
        let edge = |byte: Option<&u8>| byte.is_some_and(|byte| is_lower_alphanumeric(*byte));
        let inner = |byte: &u8| is_lower_alphanumeric(*byte) || matches!(byte, b'-' | b'_');
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
    };
    if !text.split('.').all(good) {
        errors.push(pattern_error(RULE, PATTERN, &["example.com"]));
    }
    errors
}
