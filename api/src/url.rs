//! URLs, taken apart as Go's `net/url` takes them apart, with its errors.
//!
//! Only as far as validation looks: escapes are checked and kept as they are.

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
    let parsed = without_fragment(rest).and_then(|url| {
        escapes(fragment)?;
        Ok(Url {
            fragment: fragment.to_owned(),
            ..url
        })
    });
    parsed.map_err(|error| format!("parse {}: {error}", serde_json::Value::from(text)))
}

fn without_fragment(text: &str) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
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
        if rest.split('/').next().unwrap_or("").contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !scheme.is_empty() || !rest.starts_with("///");
    if let Some(after) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, of_path) = after.split_at(end);
        (url.user, url.host) = split_authority(authority)?;
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

fn split_authority(authority: &str) -> Result<(Option<String>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, checked_host(authority)?));
    };
    let host = checked_host(host)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(fits) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    escapes(user)?;
    Ok((Some(user.to_owned()), host))
}

fn checked_host(host: &str) -> Result<String, String> {
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.find(':').map_or("", |colon| &host[colon..])
    };
    let digits = port.strip_prefix(':');
    let is_port = digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !port.is_empty() && !is_port {
        return Err(format!("invalid port {port:?} after host"));
    }
    let fits = |c: char| {
        !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(c)
    };
    if let Some(bad) = host.chars().find(|c| !fits(*c)) {
        return Err(format!(
            "invalid character {:?} in host name",
            bad.to_string()
        ));
    }
    escapes(host)?;
    Ok(host.to_owned())
}

fn escapes(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let escape: String = text[at..].chars().take(3).collect();
        let hex = escape.bytes().skip(1).filter(u8::is_ascii_hexdigit).count();
        if hex != 2 {
            return Err(format!("invalid URL escape {escape:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
