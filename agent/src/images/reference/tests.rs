//! Names as users write them, whole.

use super::*;

fn check(text: &str, full: &str) {
    assert_eq!(
        Reference::parse(text).map(|r| r.to_string()).as_deref(),
        Ok(full),
        "{text}"
    );
}

#[test]
fn names_are_made_whole() {
    check("busybox", "docker.io/library/busybox:latest");
    check("busybox:1.36", "docker.io/library/busybox:1.36");
    check("rancher/pause", "docker.io/rancher/pause:latest");
    check("index.docker.io/nginx", "docker.io/library/nginx:latest");
    check("localhost/a/b:c", "localhost/a/b:c");
    check("localhost:5000/a", "localhost:5000/a:latest");
    check(
        "127.0.0.1:5000/a-b/c__d.e:v1",
        "127.0.0.1:5000/a-b/c__d.e:v1",
    );
    check("[::1]:5000/a", "[::1]:5000/a:latest");
    let digest = format!("sha256:{}", "a".repeat(64));
    check(
        &format!("a@{digest}"),
        &format!("docker.io/library/a@{digest}"),
    );
    check(
        &format!("a:b@{digest}"),
        &format!("docker.io/library/a:b@{digest}"),
    );
}

#[test]
fn what_is_no_name_is_refused_in_upstreams_words() {
    let text = |name: &str| Reference::parse(name).unwrap_err().to_string();
    for name in [
        "a b",
        "-a",
        "a:",
        "a//b",
        "a@sha256:12",
        "a_-b",
        "a/",
        "a:b:c",
        "ex..com/a",
    ] {
        assert_eq!(text(name), "invalid reference format", "{name}");
    }
    assert_eq!(
        text("Foo"),
        "invalid reference format: repository name (library/Foo) must be lowercase"
    );
    assert_eq!(text(""), "repository name must have at least one component");
    assert!(text(&"0".repeat(64)).contains("64-byte hexadecimal"));
    assert_eq!(text(&"a/".repeat(200)), "invalid reference format");
    assert!(text(&format!("{}a", "a/".repeat(200))).contains("255 characters"));
}
