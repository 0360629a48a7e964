//! The pure parts: names, paths, links, pages.

use super::endpoint::finer;
use super::html::{Coding, Links};
use super::rewrite::Rewriter;
use super::target::Named;
use super::{headers, path};
use crate::request_info::RequestInfo;
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use http::{Method, Request};
use std::io::Read;

const PREFIX: &str = "/api/v1/namespaces/web/pods/http:p:80/proxy";

fn rewriter() -> Rewriter {
    Rewriter {
        prefix: PREFIX.to_owned(),
        target: "10.42.0.5:80".to_owned(),
        asked: "edge.example:6443".to_owned(),
    }
}

fn info(path: &str) -> RequestInfo {
    RequestInfo::parse(&Method::GET, &path.parse().unwrap())
}

#[test]
fn an_endpoint_of_a_node_has_a_right_of_its_own() {
    let asked = |path: &str| {
        let finer = finer(&info(&format!("/api/v1/nodes/{path}")))?;
        Some(format!(
            "{} {}/{}",
            finer.verb, finer.name, finer.subresource
        ))
    };
    for (path, right) in [
        ("n1/proxy/metrics", "get n1/metrics"),
        ("n1:10250/proxy/metrics/cadvisor", "get n1/metrics"),
        ("https:n1:10250/proxy/stats/summary", "get n1/stats"),
        ("n1/proxy/runningpods/", "get n1/pods"),
        ("n1/proxy/logs/x", "get n1/log"),
        ("n1/proxy/healthz/ping", "get n1/healthz"),
        ("n1/proxy//configz", "get n1/configz"),
    ] {
        assert_eq!(asked(path).as_deref(), Some(right), "{path}");
    }
    for path in [
        "n1/proxy/exec/a/b/c",
        "n1/proxy/metrics/../run/a/b/c",
        "n1/proxy/podsx",
        "n1/proxy",
        "n1:9100/proxy/metrics",
        "http:n1:10250/proxy/metrics",
        "n1/status",
    ] {
        assert_eq!(asked(path), None, "{path}");
    }
    assert!(finer(&info("/api/v1/namespaces/a/pods/p/proxy/metrics")).is_none());
}

#[test]
fn names_have_up_to_three_parts() {
    let parts = |id| Named::parse(id).map(|one| (one.scheme, one.name, one.port));
    assert_eq!(parts("p"), Some(("", "p", "")));
    assert_eq!(parts("p:80"), Some(("", "p", "80")));
    assert_eq!(parts("https:p:web"), Some(("https", "p", "web")));
    assert_eq!(parts("https:p:"), Some(("https", "p", "")));
    for bad in ["", ":80", "ftp:p:80", "http::80", "a:b:c:d"] {
        assert_eq!(parts(bad), None, "{bad}");
    }
}

#[test]
fn the_path_below_is_clean_and_keeps_its_last_slash() {
    let below = |rest: &str| path::below(&info(&format!("{PREFIX}{rest}")));
    assert_eq!(below(""), "");
    assert_eq!(below("/"), "/");
    assert_eq!(below("/a//b/./c/../d"), "/a/b/d");
    assert_eq!(below("/a/"), "/a/");
    assert_eq!(below("/../../x"), "/x");
    assert_eq!(path::encode(&below("/a%20b%3Fc")), "/a%20b%3Fc");
    let node = info("/api/v1/nodes/n1:10250/proxy/stats/summary");
    assert_eq!(path::below(&node), "/stats/summary");
}

#[test]
fn links_to_the_target_lead_through_the_proxy() {
    let turn = |link: &str| rewriter().turn(link);
    assert_eq!(turn("/x?q=/y#z"), format!("{PREFIX}/x?q=/y#z"));
    assert_eq!(turn("/dir/"), format!("{PREFIX}/dir/"));
    assert_eq!(turn("http://10.42.0.5:80/x"), format!("{PREFIX}/x"));
    assert_eq!(
        turn("https://edge.example:6443/x"),
        format!("https://edge.example:6443{PREFIX}/x")
    );
    for same in [
        "x/y",
        "",
        "#top",
        "http://elsewhere/x",
        "mailto:a@b",
        "//other/x",
    ] {
        assert_eq!(turn(same), same);
    }
    let turned = format!("{PREFIX}/x");
    assert_eq!(turn(&turned), turned);
}

fn through(page: &str, step: usize) -> String {
    let mut links = Links::new(rewriter(), Coding::Plain);
    let mut out = Vec::new();
    for piece in page.as_bytes().chunks(step) {
        out.extend_from_slice(&links.push(piece).unwrap());
    }
    out.extend_from_slice(&links.finish().unwrap());
    String::from_utf8(out).unwrap()
}

#[test]
fn a_page_is_turned_however_it_is_cut() {
    let page = "<!DOCTYPE html><!-- <a href=\"/no\"> --><HTML><title><a href=/no></title>\
                <A class='x>' HREF=\"/yes\">1 < 2</a><img src=/i.png alt><a href='rel'>\
                <script src=\"/s.js\">if (a</b) { \"<a href='/no'>\" }</script><p title=\"/no\">\
                <form action = \"http://10.42.0.5:80/f\"><br/>é</html><a href=\"/cut";
    let expected = format!(
        "<!DOCTYPE html><!-- <a href=\"/no\"> --><HTML><title><a href=/no></title>\
         <A class='x>' HREF=\"{PREFIX}/yes\">1 < 2</a><img src={PREFIX}/i.png alt>\
         <a href='rel'><script src=\"{PREFIX}/s.js\">if (a</b) {{ \"<a href='/no'>\" }}</script>\
         <p title=\"/no\"><form action = \"{PREFIX}/f\"><br/>é</html><a href=\"/cut"
    );
    for step in [1, 2, 3, 7, 64, 4096] {
        assert_eq!(through(page, step), expected, "{step}");
    }
}

#[test]
fn a_packed_page_stays_packed() {
    let mut packed = Vec::new();
    GzEncoder::new(&b"<a href=\"/x\">"[..], Compression::fast())
        .read_to_end(&mut packed)
        .unwrap();
    let mut links = Links::new(rewriter(), Coding::of("gzip").unwrap());
    let mut out = Vec::new();
    for piece in packed.chunks(5) {
        out.extend_from_slice(&links.push(piece).unwrap());
    }
    out.extend_from_slice(&links.finish().unwrap());
    let mut page = String::new();
    GzDecoder::new(&out[..]).read_to_string(&mut page).unwrap();
    assert_eq!(page, format!("<a href=\"{PREFIX}/x\">"));
    assert_eq!(Coding::of("br"), None);
}

#[test]
fn what_is_the_callers_own_stays_here() {
    let request = Request::get(PREFIX)
        .header("host", "edge.example:6443")
        .header("authorization", "Bearer secret")
        .header("impersonate-user", "me")
        .header("impersonate-extra-x", "y")
        .header("connection", "keep-alive, x-own")
        .header("x-own", "1")
        .header("x-kept", "2")
        .header(
            "sec-websocket-protocol",
            "base64url.bearer.authorization.k8s.io.YQ, chat",
        )
        .header("x-forwarded-for", "192.0.2.1")
        .body(())
        .unwrap();
    let mut parts = request.into_parts().0;
    let peer = crate::api::PeerAddress("192.0.2.2".parse().unwrap());
    parts.extensions.insert(peer);
    headers::prepare(&mut parts, &rewriter(), "/a b/");
    let mut shown: Vec<String> = parts
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    shown.sort();
    assert_eq!(
        shown,
        [
            "host: edge.example:6443".to_owned(),
            "sec-websocket-protocol: chat".to_owned(),
            "x-forwarded-for: 192.0.2.1, 192.0.2.2".to_owned(),
            format!("x-forwarded-uri: {PREFIX}/a%20b/"),
            "x-kept: 2".to_owned(),
        ]
    );
}
