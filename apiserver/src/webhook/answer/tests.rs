//! Codes and bodies, and what is said of them.

use super::*;
use expect_test::{Expect, expect};

fn check(code: u16, content_type: &str, body: &'static str, expected: Expect) {
    let head = Head {
        code,
        content_type: content_type.to_owned(),
    };
    let told = match read(&head, Bytes::from_static(body.as_bytes())) {
        Ok(body) => format!("read {body:?}"),
        Err((message, code)) => format!("{code}: {message}"),
    };
    expected.assert_eq(&told);
}

#[test]
fn what_is_no_success_is_told_as_upstreams_client_does() {
    check(
        404,
        "text/plain",
        "no such page",
        expect!["404: the server could not find the requested resource"],
    );
    check(
        500,
        "text/plain; charset=utf-8",
        "it broke\n",
        expect![[
            r#"500: an error on the server ("it broke") has prevented the request from succeeding"#
        ]],
    );
    check(
        502,
        "application/octet-stream",
        "x",
        expect![[
            r#"502: an error on the server ("unknown") has prevented the request from succeeding"#
        ]],
    );
    check(403, "text/plain", "not you", expect!["403: not you"]);
    check(
        302,
        "",
        "",
        expect![
            "302: the server responded with the status code 302 but did not return more information"
        ],
    );
}

#[test]
fn a_status_speaks_for_itself() {
    let body =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":422,"message":"no"}"#;
    check(500, "application/json", body, expect!["422: no"]);
    check(200, "application/json", body, expect!["422: no"]);
}

#[test]
fn nothing_is_no_answer() {
    check(
        200,
        "",
        "",
        expect!["503: 0-length response with status code: 200 and content type: application/json"],
    );
    check(200, "application/json", "{}", expect![[r#"read b"{}""#]]);
}
