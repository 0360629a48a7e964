//! URLs, taken apart as Go's `net/url` takes them apart, with its errors.
//!
//! Only as far as validation looks: escapes are checked and kept as they are.

use crate::decode::quoted;
use std::net::IpAddr;

/// The parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    pub scheme: String,
    /// `user` or `user:password`, where there is an `@`.
    pub user: Option<String>,
    /// With its port.
    pub host: String,
    pub path: String,
    pub query: String,
    pub fragment: String,
}

/// The error is the text of Go's.
pub fn parse(text: &str) -> Result<Url, String> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let parsed = without_fragment(rest, false).and_then(|url| {
        escapes(fragment)?;
        Ok(Url {
            fragment: fragment.to_owned(),
            ..url
        })
    });
    parsed.map_err(|error| format!("parse {}: {error}", quoted(text)))
}

/// Whether Go takes it as what a request is for: a whole URL or a path from the root, without a
/// fragment.
pub fn is_of_request(text: &str) -> bool {
    !text.is_empty() && without_fragment(text, true).is_ok()
}

fn without_fragment(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text == "*" {
        return Ok(Url {
            path: text.to_owned(),
            ..Url::default()
        });
    }
    let (scheme, rest) = scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url {
        scheme: scheme.to_ascii_lowercase(),
        query: query.to_owned(),
        ..Url::default()
    };
    let mut path = rest;
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            // What follows is opaque.
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().unwrap_or("").contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !scheme.is_empty() || !is_request && !rest.starts_with("///");
    if let Some(after) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, of_path) = after.split_at(end);
        (url.user, url.host) = split_authority(&url.scheme, authority)?;
        path = of_path;
    }
    escapes(path)?;
    path.clone_into(&mut url.path);
    Ok(url)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn split_authority(scheme: &str, authority: &str) -> Result<(Option<String>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, checked_host(scheme, authority)?));
    };
    let host = checked_host(scheme, host)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(fits) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    escapes(user)?;
    Ok((Some(user.to_owned()), host))
}

fn checked_host(scheme: &str, host: &str) -> Result<String, String> {
    let port = match host.rfind('[') {
        Some(0) => host.rsplit_once(']').ok_or("missing ']' in host")?.1,
        Some(_) => return Err("invalid IP-literal".to_owned()),
        // Some databases take several hosts, each with its port.
        None if matches!(scheme, "http" | "https") => host.find(':').map_or("", |at| &host[at..]),
        None => host.rfind(':').map_or("", |at| &host[at..]),
    };
    let digits = port.strip_prefix(':');
    let is_port = digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !port.is_empty() && !is_port {
        return Err(format!("invalid port {} after host", quoted(port)));
    }
    let literal = host.strip_prefix('[');
    match literal.and_then(|inner| inner.split_once(']')) {
        Some((inner, _)) => checked_literal(inner)?,
        None => host_characters(host, false)?,
    }
    Ok(host.to_owned())
}

/// What stands between brackets: an address of IPv6, perhaps with a zone.
fn checked_literal(inner: &str) -> Result<(), String> {
    let (address, zone) = match inner.find("%25") {
        Some(at) => (&inner[..at], Some(&inner[at + 3..])),
        None => (inner, None),
    };
    host_characters(address, false)?;
    host_characters(zone.unwrap_or(""), true)?;
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) if zone != Some("") => Ok(()),
        Ok(IpAddr::V4(_)) if zone.is_none() => Err("invalid IP-literal".to_owned()),
        _ => {
            let inner = quoted(&inner.replacen("%25", "%", 1));
            Err(format!(
                "invalid host: ParseAddr({inner}): unable to parse IP"
            ))
        }
    }
}

/// In a host only what is not of ASCII may be escaped, and a percent sign.
fn host_characters(text: &str, is_zone: bool) -> Result<(), String> {
    escapes(text)?;
    for (at, _) in text.match_indices('%') {
        let escape = &text[at..at + 3];
        if !is_zone && escape.as_bytes()[1] < b'8' && escape != "%25" {
            return Err(format!("invalid URL escape {}", quoted(escape)));
        }
    }
    let fits = |c: char| {
        !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c)
    };
    match text.chars().find(|c| !fits(*c)) {
        Some(bad) => {
            let bad = quoted(&bad.to_string());
            Err(format!("invalid character {bad} in host name"))
        }
        None => Ok(()),
    }
}

fn escapes(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let escape: String = text[at..].chars().take(3).collect();
        let hex = escape.bytes().skip(1).filter(u8::is_ascii_hexdigit).count();
        if hex != 2 {
            return Err(format!("invalid URL escape {}", quoted(&escape)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
