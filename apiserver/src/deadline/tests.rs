//! Time that is over before an answer is there, and while it goes out. The clock is paused.

use super::*;
use http::{Method, Uri};
use http_body_util::StreamBody;

async fn deadline_ms(target: &str) -> Result<Option<u128>, String> {
    let uri: Uri = target.parse().unwrap();
    let info = RequestInfo::parse(&Method::GET, &uri);
    let begun = Instant::now();
    let query = Query::parse(uri.query().unwrap_or(""));
    of(&info, &query, begun)
        .map(|until| until.map(|until| (until - begun).as_millis()))
        .map_err(|status| format!("{} {}", status.code, status.message))
}

#[tokio::test(start_paused = true)]
async fn a_request_has_what_it_asks_for_and_a_minute_at_most() {
    let pods = "/api/v1/pods";
    let cases = [
        ("", Some(60_000)),
        ("?timeout=1500ms", Some(1_500)),
        ("?timeout=0", Some(60_000)),
        ("?timeout=-5s", Some(60_000)),
        ("?timeout=2h", Some(60_000)),
        ("?timeout=1s&watch=1", None),
    ];
    for (query, expected) in cases {
        assert_eq!(deadline_ms(&format!("{pods}{query}")).await, Ok(expected));
    }
    let log = "/api/v1/namespaces/a/pods/b/log?timeout=x";
    assert_eq!(deadline_ms(log).await, Ok(None));
    assert_eq!(
        deadline_ms("/healthz?timeout=5").await.unwrap_err(),
        "400 invalid timeout specified in the request URL - time: missing unit in duration \"5\""
    );
}

#[tokio::test(start_paused = true)]
async fn late_answers_are_504() {
    let until = Instant::now() + Duration::from_secs(1);
    let response = meet(Some(until), std::future::pending()).await.unwrap();
    assert_eq!(response.status(), 504);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        String::from_utf8_lossy(&body),
        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not complete \
         within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_still_going_out_ends_in_an_error() {
    let until = Instant::now() + Duration::from_secs(1);
    let endless = futures::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"a"))), ()))
    });
    let response = Response::new(BodyExt::boxed_unsync(StreamBody::new(endless)));
    let answer = std::future::ready(Ok(response));
    let response = meet(Some(until), answer).await.unwrap();
    let mut body = response.into_body();
    for _ in 0..2 {
        assert!(body.frame().await.unwrap().is_ok());
    }
    let error = body.frame().await.unwrap().unwrap_err();
    assert!(error.is::<Over>());
}
