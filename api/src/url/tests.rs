//! URLs as Go takes them apart.

use super::*;

fn parts(text: &str) -> String {
    match parse(text) {
        Ok(url) => format!(
            "{} {} {} {} {} {}",
            url.scheme,
            url.user.unwrap_or("-".to_owned()),
            url.host,
            url.path,
            url.query,
            url.fragment
        ),
        Err(error) => error,
    }
}

#[test]
fn taken_apart() {
    assert_eq!(parts("https://a.b:1/c?d#e"), "https - a.b:1 /c d e");
    assert_eq!(parts("HTTPS://u:p@[::1]:8443"), "https u:p [::1]:8443   ");
    assert_eq!(parts("a.b/c"), " -  a.b/c  ");
    assert_eq!(parts("mailto:x"), "mailto -    ");
    assert_eq!(parts(""), " -    ");
}

#[test]
fn errors_are_those_of_go() {
    assert_eq!(parts(":x"), "parse \":x\": missing protocol scheme");
    assert_eq!(
        parts("1:x"),
        "parse \"1:x\": first path segment in URL cannot contain colon"
    );
    assert_eq!(
        parts("https://a:b"),
        "parse \"https://a:b\": invalid port \":b\" after host"
    );
    assert_eq!(
        parts("https://[::1:8443"),
        "parse \"https://[::1:8443\": missing ']' in host"
    );
    assert_eq!(
        parts("https://[::1]8443"),
        "parse \"https://[::1]8443\": invalid port \"8443\" after host"
    );
    assert_eq!(
        parts("https://a b"),
        "parse \"https://a b\": invalid character \" \" in host name"
    );
    assert_eq!(
        parts("https://a/%zz"),
        "parse \"https://a/%zz\": invalid URL escape \"%zz\""
    );
    assert_eq!(
        parts("a\u{1}"),
        "parse \"a\\x01\": net/url: invalid control character in URL"
    );
}
