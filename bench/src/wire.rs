//! Requests made of bytes, and answers that nobody decodes: a server is measured, not this program.

use coracle_client::Client;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::core::Status;

pub const JSON: &str = "application/json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// Of an answer that is an error's; more of it says no more.
const ERROR_BYTES_MAX: usize = 16 << 10;
/// Stands for a name until there is one: nothing that a server takes is called so.
const NAME: &str = "<name>";

/// An object that was encoded once, for many names.
#[derive(Debug)]
pub struct Template {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Template {
    pub fn new(mut object: ConfigMap) -> anyhow::Result<Self> {
        object.metadata.name = Some(NAME.to_owned());
        let text = serde_json::to_string(&object)?;
        let parts = text.split_once(NAME);
        let (before, after) = parts.ok_or_else(|| anyhow::anyhow!("an object without a name"))?;
        Ok(Self {
            before: before.into(),
            after: after.into(),
        })
    }

    pub fn named(&self, name: &str) -> Vec<u8> {
        [&self.before, name.as_bytes(), &self.after].concat()
    }
}

/// Sends it, takes the answer in and keeps none of it.
pub async fn send(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Result<(), kube::Error> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(CONTENT_TYPE, content_type);
    let request = request.body(Body::from(body));
    drain(
        client
            .send(request.map_err(kube::Error::HttpError)?)
            .await?,
    )
    .await
}

/// Reads the body and keeps none of it, but what an error says.
pub async fn drain(answer: Response<Body>) -> Result<(), kube::Error> {
    let code = answer.status();
    let mut body = answer.into_body();
    let mut said = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        if !code.is_success() && said.len() < ERROR_BYTES_MAX {
            said.extend_from_slice(frame.data_ref().map_or(&[][..], |data| &data[..]));
        }
    }
    succeeded(code, &said)
}

/// The whole body, if it is no error's.
pub async fn taken_in(answer: Response<Body>) -> Result<Vec<u8>, kube::Error> {
    let code = answer.status();
    let mut body = answer.into_body();
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    succeeded(code, &whole).map(|()| whole)
}

fn succeeded(code: StatusCode, said: &[u8]) -> Result<(), kube::Error> {
    if code.is_success() {
        return Ok(());
    }
    let status: Status = serde_json::from_slice(said).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(said);
        Status::failure(&format!("answered {code}: {text}"), "Unknown").with_code(code.as_u16())
    });
    Err(kube::Error::Api(status.boxed()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_object_is_encoded_once_for_many_names() {
        let data = BTreeMap::from([("value".to_owned(), "x\"y".to_owned())]);
        let object = ConfigMap {
            data: Some(data),
            ..ConfigMap::default()
        };
        let template = Template::new(object.clone()).unwrap();
        for name in ["c-1", "c-2"] {
            let found: ConfigMap = serde_json::from_slice(&template.named(name)).unwrap();
            let mut expected = object.clone();
            expected.metadata.name = Some(name.to_owned());
            assert_eq!(found, expected);
        }
    }

    fn answer(code: u16, text: &'static str) -> Response<Body> {
        let answer = Response::builder().status(code);
        answer.body(Body::from(text.as_bytes().to_vec())).unwrap()
    }

    #[tokio::test]
    async fn an_error_says_what_the_server_said() {
        let status = r#"{"kind":"Status","status":"Failure","message":"no room","code":507}"#;
        for (answer, expected) in [
            (answer(507, status), "no room"),
            (
                answer(502, "bad gateway"),
                "answered 502 Bad Gateway: bad gateway",
            ),
        ] {
            let Err(kube::Error::Api(found)) = drain(answer).await else {
                panic!("an error that is not the server's");
            };
            assert_eq!(found.message, expected);
        }
        assert!(drain(answer(201, "{}")).await.is_ok());
        assert_eq!(taken_in(answer(200, "{}")).await.unwrap(), b"{}");
    }
}
