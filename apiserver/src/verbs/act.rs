//! What the subresources that act on an object share: a small body that names the object, and the
//! answer that it was done.

use super::asked::Asked;
use super::decode::Expected;
use super::write_options::{Kind, WriteOptions};
use crate::Api;
use crate::admission::Operation;
use crate::body::Encoded;
use crate::respond::json_bytes;
use crate::tunnel::Body;
use coracle_api::object::Object;
use coracle_api::status::Status;
use http::{Response, StatusCode};
use serde_json::json;

/// The body of a request that acts on an object, and how it is to be done.
#[derive(Debug)]
pub struct Act {
    pub body: Object,
    /// The object's name: from the path, or else from the body.
    pub name: String,
    pub options: WriteOptions,
}

/// Reads the body, which must be about the object in the path.
pub async fn read(
    asked: &Asked<'_>,
    expected: &Expected,
    request_body: Body,
) -> Result<Act, Status> {
    let options = WriteOptions::parse(asked, Kind::Create)?;
    let body = Encoded::read(&asked.request.headers, request_body).await?;
    let (mut body, _) = expected.decode(&body, options.field_validation)?;
    let name = match asked.info.name.as_str() {
        "" => body.name().to_owned(),
        name => name.to_owned(),
    };
    if body.name() != name {
        return Err(Status::bad_request(format!(
            "name in URL does not match name in {} object",
            expected.kind
        )));
    }
    body.set(&["metadata", "name"], name.as_str().into());
    asked.settle_namespace(&mut body)?;
    Ok(Act {
        body,
        name,
        options,
    })
}

/// Lets admission see the body.
pub async fn admit(
    api: &Api,
    asked: &Asked<'_>,
    act: &mut Act,
    dry_run: bool,
) -> Result<(), Status> {
    let attributes = asked.attributes(Operation::Create, &act.name, None, dry_run);
    let admission = &api.access.admission;
    admission.mutate(&mut act.body, &attributes).await?;
    admission.validate(&act.body, &attributes).await
}

/// The answer that it was done.
pub fn done() -> Response<Body> {
    let answer = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    json_bytes(StatusCode::CREATED, answer.to_string())
}
