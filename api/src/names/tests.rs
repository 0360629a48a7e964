//! Names, labels, ports and addresses: what is right, and the words for what is not.

use super::*;
use expect_test::{Expect, expect};

fn check(check: fn(&str) -> Vec<String>, texts: &[&str], expected: Expect) {
    let lines: Vec<String> = texts
        .iter()
        .map(|text| {
            let shown = if text.len() > 40 { "(long)" } else { text };
            format!("{shown:?}: {}", check(text).join("; "))
        })
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn dns_names() {
    let long = "a".repeat(64);
    check(
        dns_label,
        &["a", "a-1", "", "A", "a.b", "-a", &long],
        expect![[r#"
            "a": 
            "a-1": 
            "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "a.b": must not contain dots
            "-a": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            "(long)": must be no more than 63 characters"#]],
    );
    check(
        dns_subdomain,
        &["a.b-c.1", "a..b", ".a", "a_b"],
        expect![[r#"
        "a.b-c.1": 
        "a..b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        ".a": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
    check(
        dns_1035_label,
        &["a1", "1a"],
        expect![[r#"
        "a1": 
        "1a": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#]],
    );
    check(
        path_segment,
        &["system:node", "a/b", "..", "a%2f"],
        expect![[r#"
            "system:node": 
            "a/b": may not contain '/'
            "..": may not be '..'
            "a%2f": may not contain '%'"#]],
    );
}

#[test]
fn labels_and_keys() {
    let long = "a".repeat(64);
    check(
        qualified_name,
        &[
            "a",
            "example.com/a_B.c",
            "/a",
            "a/",
            "A/b",
            "a/b/c",
            "",
            &long,
        ],
        expect![[r#"
            "a": 
            "example.com/a_B.c": 
            "/a": prefix part must be non-empty
            "a/": name part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            "A/b": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
            "": name part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            "(long)": name part must be no more than 63 bytes"#]],
    );
    check(
        label_value,
        &["", "a_B.1", "-", &long],
        expect![[r#"
        "": 
        "a_B.1": 
        "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        "(long)": must be no more than 63 bytes"#]],
    );
    check(
        config_key,
        &["a.b_C-1", ".", "..", "..a", "a/b", ""],
        expect![[r#"
            "a.b_C-1": 
            ".": must not be '.'
            "..": must not be '..'
            "..a": must not start with '..'
            "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
            "": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#]],
    );
    check(
        relaxed_env_var,
        &["A B", "", "A=B", "\u{e9}"],
        expect![[r#"
        "A B": 
        "": environment variable name must be non-empty
        "A=B": a valid environment variable name must consist only of printable ASCII characters other than '='
        "é": a valid environment variable name must consist only of printable ASCII characters other than '='"#]],
    );
}

#[test]
fn ports() {
    check(
        port_name,
        &["http", "", "80", "a--b", "-a", "toolongtoolonga1", "A"],
        expect![[r#"
            "http": 
            "": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-); must contain at least one letter (a-z)
            "80": must contain at least one letter (a-z)
            "a--b": must not contain consecutive hyphens
            "-a": must not begin or end with a hyphen
            "toolongtoolonga1": must be no more than 15 characters
            "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-); must contain at least one letter (a-z)"#]],
    );
}

#[test]
fn addresses_and_ranges() {
    check(
        ip,
        &[
            "10.0.0.1",
            "::1",
            "10.0.0.01",
            "::ffff:1.2.3.4",
            "10.0.0",
            "x",
        ],
        expect![[r#"
            "10.0.0.1": 
            "::1": 
            "10.0.0.01": must not have leading 0s
            "::ffff:1.2.3.4": must not be an IPv4-mapped IPv6 address
            "10.0.0": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
            "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#]],
    );
    check(
        cidr,
        &[
            "10.0.0.0/8",
            "::/0",
            "10.0.0.1/8",
            "10.0.0.0/08",
            "10.0.0.0/33",
            "10.0.0.0",
            "x/8",
        ],
        expect![[r#"
            "10.0.0.0/8": 
            "::/0": 
            "10.0.0.1/8": must not have bits set beyond the prefix length
            "10.0.0.0/08": must not have leading 0s in IP or prefix length
            "10.0.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
            "10.0.0.0": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
            "x/8": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#]],
    );
    check(
        http_header,
        &["X-A", "", "a b"],
        expect![[r#"
        "X-A": 
        "": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')
        "a b": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"#]],
    );
    check(
        dns_subdomain_with_underscore,
        &["_a._b.c", "a_b", "-a", "a_"],
        expect![[r#"
            "_a._b.c": 
            "a_b": 
            "-a": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')
            "a_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"#]],
    );
    check(
        percentage,
        &["5%", "x%", "5"],
        expect![[r#"
        "5%": 
        "x%": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')
        "5": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"#]],
    );
}
