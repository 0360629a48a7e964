//! What names, label keys and label values may look like, in upstream's words.
//!
//! Each check returns the texts of what is wrong; none means the value is good.

mod network;

pub use network::{
    canonical_cidr, canonical_ip, cidr, dns_subdomain_with_underscore, http_header,
    in_canonical_range, interface_address, ip, is_sloppy_range, non_standard_ip,
    non_standard_range, port_name, port_number, sloppy_ip, wildcard_subdomain,
};

/// Detail of a number that must not be negative.
pub const MUST_NOT_BE_NEGATIVE: &str = "must be greater than or equal to 0";
pub const IMMUTABLE: &str = "field is immutable";

const LABEL_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                          characters or '-', and must start and end with an alphanumeric character";
const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
                              alphanumeric characters, '-' or '.', and must start and end with an \
                              alphanumeric character";
const SUBDOMAIN_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric \
                               characters or '-', start with an alphabetic character, and end \
                               with an alphanumeric character";
const LABEL_1035_PATTERN: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
                              start and end with an alphanumeric character";
const QUALIFIED_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
                                characters, '-', '_' or '.', and must start and end with an \
                                alphanumeric character";
const LABEL_VALUE_PATTERN: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// `RULE (e.g. 'a',  or 'b', regex used for validation is 'PATTERN')`, upstream's `RegexError`.
fn pattern_error(rule: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{pattern}')");
    }
    let mut text = format!("{rule} (e.g. ");
    for (index, example) in examples.iter().enumerate() {
        if index > 0 {
            text.push_str(" or ");
        }
        text.push_str(&format!("'{example}', "));
    }
    text.push_str(&format!("regex used for validation is '{pattern}')"));
    text
}

/// Upstream counts bytes and says characters for names, bytes for labels.
fn max_length_error(bytes_max: usize) -> String {
    format!("must be no more than {bytes_max} characters")
}

fn max_bytes_error(bytes_max: usize) -> String {
    format!("must be no more than {bytes_max} bytes")
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn matches_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edges = bytes.first().copied().is_some_and(is_lower_alphanumeric)
        && bytes.last().copied().is_some_and(is_lower_alphanumeric);
    edges
        && bytes
            .iter()
            .all(|byte| is_lower_alphanumeric(*byte) || *byte == b'-')
}

fn matches_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edges = bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric);
    edges
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// RFC 1123 label: a namespace, a container, a volume.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_BYTES_MAX {
        errors.push(max_length_error(LABEL_BYTES_MAX));
    }
    if !matches_label(text) {
        if matches_subdomain(text) {
            // The dots are what is wrong, and not the characters.
            errors.push("must not contain dots".to_owned());
        } else {
            errors.push(pattern_error(
                LABEL_RULE,
                LABEL_PATTERN,
                &["my-name", "123-abc"],
            ));
        }
    }
    errors
}

fn matches_subdomain(text: &str) -> bool {
    !text.is_empty() && text.split('.').all(matches_label)
}

/// RFC 1123 subdomain: most object names.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        errors.push(max_length_error(SUBDOMAIN_BYTES_MAX));
    }
    if !matches_subdomain(text) {
        errors.push(pattern_error(
            SUBDOMAIN_RULE,
            SUBDOMAIN_PATTERN,
            &["example.com"],
        ));
    }
    errors
}

/// RFC 1035 label: it begins with a letter.
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_BYTES_MAX {
        errors.push(max_length_error(LABEL_BYTES_MAX));
    }
    let letter_first = text.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    if !(letter_first && matches_label(text)) {
        errors.push(pattern_error(
            LABEL_1035_RULE,
            LABEL_1035_PATTERN,
            &["my-name", "abc-123"],
        ));
    }
    errors
}

/// A name that is one segment of a path and nothing more (RBAC).
pub fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|banned| text.contains(**banned))
        .map(|banned| format!("may not contain '{banned}'"))
        .collect()
}

/// A label key, a taint key, a resource name: an optional DNS prefix, a slash, a name.
pub fn qualified_name(text: &str) -> Vec<String> {
    const EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];
    let mut errors = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                let prefix_errors = dns_subdomain(prefix);
                errors.extend(prefix_errors.iter().map(|e| format!("prefix part {e}")));
            }
            name
        }
        _ => {
            let rule = format!("a valid label key {QUALIFIED_RULE}");
            let text = pattern_error(&rule, QUALIFIED_PATTERN, EXAMPLES);
            errors.push(format!(
                "{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return errors;
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_BYTES_MAX {
        errors.push(format!("name part {}", max_bytes_error(LABEL_BYTES_MAX)));
    }
    if !matches_qualified(name) {
        let text = pattern_error(QUALIFIED_RULE, QUALIFIED_PATTERN, EXAMPLES);
        errors.push(format!("name part {text}"));
    }
    errors
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_BYTES_MAX {
        errors.push(max_bytes_error(LABEL_BYTES_MAX));
    }
    if !text.is_empty() && !matches_qualified(text) {
        errors.push(pattern_error(
            LABEL_VALUE_RULE,
            LABEL_VALUE_PATTERN,
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// A key in a ConfigMap or a Secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        errors.push(max_length_error(SUBDOMAIN_BYTES_MAX));
    }
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty() || !text.as_bytes().iter().all(good) {
        errors.push(pattern_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    errors.extend(no_dots(text));
    errors
}

/// An identifier in C.
pub fn c_identifier(text: &str) -> Vec<String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let digit_first = text.as_bytes().first().is_some_and(u8::is_ascii_digit);
    if !text.is_empty() && !digit_first && text.bytes().all(good) {
        return Vec::new();
    }
    vec![pattern_error(
        "a valid C identifier must start with alphabetic character or '_', followed by a string \
         of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// The name of an environment variable: any printable ASCII but `=`.
pub fn relaxed_env_var(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.is_empty() {
        errors.push("environment variable name must be non-empty".to_owned());
    }
    let bad = |c: char| !(' '..='~').contains(&c) || c == '=';
    if text.contains(bad) {
        errors.push(
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='"
                .to_owned(),
        );
    }
    errors
}

fn no_dots(text: &str) -> Vec<String> {
    match text {
        "." => vec!["must not be '.'".to_owned()],
        ".." => vec!["must not be '..'".to_owned()],
        _ if text.starts_with("..") => vec!["must not start with '..'".to_owned()],
        _ => Vec::new(),
    }
}

/// A number between two bounds, both allowed.
pub fn between(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) {
        Vec::new()
    } else {
        vec![format!("must be between {low} and {high}, inclusive")]
    }
}

/// The text of an absolute limit, for a percentage such as a rolling update's: `25%`.
pub fn percentage(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or("");
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        Vec::new()
    } else {
        let rule = "a valid percent string must be a numeric string followed by an ending '%'";
        vec![pattern_error(rule, "[0-9]+%", &["1%", "93%"])]
    }
}

/// A reason of a condition.
pub fn condition_reason(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
    let last = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(last)
        && bytes.iter().all(inner)
    {
        return Vec::new();
    }
    vec![pattern_error(
        "a condition reason must start with alphabetic character, optionally followed by a string \
         of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        &[
            "my_name",
            "MY_NAME",
            "MyName",
            "ReasonA,ReasonB",
            "ReasonA:ReasonB",
        ],
    )]
}

/// The path after the domain in `acme.io/foo`.
pub fn http_path(text: &str) -> Vec<String> {
    const SIGNS: &[u8] = b"/-._~%!$&'()*+,;=:";
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || SIGNS.contains(byte);
    if !text.is_empty() && text.as_bytes().iter().all(good) {
        return Vec::new();
    }
    vec![pattern_error(
        "Invalid path",
        r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+",
        &[],
    )]
}

#[cfg(test)]
mod tests;
