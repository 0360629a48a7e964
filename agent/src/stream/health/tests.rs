//! What is told of checks.

use super::*;
use http_body_util::BodyExt;

async fn told(response: Response<Body>) -> (u16, String) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_failure_is_told_by_name() {
    let ok = (200, "ok".to_owned());
    assert_eq!(told(respond("", None, false)).await, ok);
    assert_eq!(told(respond("ping", Some("syncloop"), false)).await, ok);
    assert_eq!(
        told(respond("syncloop", Some("syncloop"), false)).await.0,
        500
    );
    let all = "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n";
    assert_eq!(told(respond("", None, true)).await, (200, all.to_owned()));
    let failed = "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\n\
                  healthz check failed\n";
    let answer = told(respond("", Some("syncloop"), false)).await;
    assert_eq!(answer, (500, failed.to_owned()));
}
