//! Getting one ConfigMap and listing many, as JSON, as protobuf, and in pages.
//!
//! Answers are taken in and not decoded: the server is measured, not this program.

use crate::pool;
use crate::scratch::Scratch;
use crate::stats::Report;
use crate::wire::{self, JSON};
use crate::{configmaps, configmaps::name_of};
use coracle_client::Client;
use http::header::ACCEPT;
use http::{Request, Response};
use kube::client::Body;
use std::sync::Arc;

/// Of gets, and of creating what is listed. Lists have one.
pub const CONNECTIONS: usize = 16;
const OBJECTS: [usize; 3] = [100, 1_000, 27_000];
const PAGE: usize = 500;
/// So many objects are listed in a round, or the fewest lists that tell something.
const LISTED: usize = 50_000;
const LISTS_MIN: usize = 3;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

#[derive(Clone, Debug, PartialEq)]
pub struct Reads {
    pub objects: usize,
    pub bytes: usize,
    /// None where gets are measured in another case.
    pub gets: usize,
}

/// Up to `objects_max` objects.
pub fn cases(count: usize, bytes: usize, objects_max: usize) -> Vec<Reads> {
    let sizes = OBJECTS.into_iter().filter(|size| *size <= objects_max);
    let of_size = |(number, objects)| Reads {
        objects,
        bytes,
        gets: if number == 0 { count } else { 0 },
    };
    sizes.enumerate().map(of_size).collect()
}

impl Reads {
    pub async fn prepare(&self, scratch: &Scratch, clients: &[Client]) -> anyhow::Result<()> {
        let made = configmaps::create(scratch, clients, self.objects, self.bytes).await?;
        anyhow::ensure!(made.failed == 0, "{} creates failed", made.failed);
        Ok(())
    }

    pub async fn measure(
        &self,
        scratch: &Scratch,
        clients: &[Client],
    ) -> anyhow::Result<Vec<Report>> {
        let list = configmaps::path_in(&scratch.name);
        let one = format!("{list}/{}", name_of(0));
        let mut reports = Vec::new();
        for (format, accept) in [("JSON", JSON), ("protobuf", PROTOBUF)] {
            if self.gets > 0 {
                let work = format!("get, {format}, {} connections", clients.len());
                reports.push(whole(&work, clients, self.gets, &one, accept).await?);
            }
        }
        let lists = (LISTED / self.objects).max(LISTS_MIN);
        for (format, accept) in [("JSON", JSON), ("protobuf", PROTOBUF)] {
            let work = format!("list of {}, {format}", self.objects);
            reports.push(whole(&work, &clients[..1], lists, &list, accept).await?);
        }
        let work = format!("list of {}, pages of {PAGE}", self.objects);
        let path: Arc<str> = list.into();
        let paged = pool::run(&work, &clients[..1], lists, move |client, _| {
            let path = Arc::clone(&path);
            async move { pages(&client, &path).await }
        });
        reports.push(paged.await?);
        Ok(reports)
    }
}

async fn whole(
    work: &str,
    clients: &[Client],
    count: usize,
    path: &str,
    accept: &'static str,
) -> anyhow::Result<Report> {
    let path: Arc<str> = path.into();
    pool::run(work, clients, count, move |client, _| {
        let path = Arc::clone(&path);
        async move { wire::drain(ask(&client, &path, accept).await?).await }
    })
    .await
}

/// Reads on until a page says that it is the last.
async fn pages(client: &Client, path: &str) -> Result<(), kube::Error> {
    let mut next = String::new();
    loop {
        let page = format!("{path}?limit={PAGE}{next}");
        let body = wire::taken_in(ask(client, &page, JSON).await?).await?;
        match continuation(&body) {
            Some(token) => next = format!("&continue={}", escaped(token)),
            None => return Ok(()),
        }
    }
}

async fn ask(client: &Client, path: &str, accept: &str) -> Result<Response<Body>, kube::Error> {
    let request = Request::get(path).header(ACCEPT, accept);
    let request = request.body(Body::empty());
    client.send(request.map_err(kube::Error::HttpError)?).await
}

/// Where the next page begins. No value of these lists holds a quotation mark, so that this is the
/// list's own field.
fn continuation(body: &[u8]) -> Option<&[u8]> {
    const FIELD: &[u8] = b"\"continue\":\"";
    let at = body.windows(FIELD.len()).position(|part| part == FIELD)?;
    let token = &body[at + FIELD.len()..];
    let end = token.iter().position(|byte| *byte == b'"')?;
    (end > 0).then_some(&token[..end])
}

fn escaped(token: &[u8]) -> String {
    let each = token.iter().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(*byte).to_string(),
        other => format!("%{other:02X}"),
    });
    each.collect()
}

#[cfg(test)]
mod tests;
