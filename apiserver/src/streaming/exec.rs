//! `pods/exec` and `pods/attach`: a session with the client, and a request to the pod's node.

use super::{Place, Streams, refusal};
use crate::authenticate::User;
use crate::query::{Query, encode};
use crate::request_info::RequestInfo;
use crate::tunnel::Body;
use coracle_api::status::Status;
use coracle_streams::command::{self, Start, Wanted};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt;

impl Streams {
    pub(super) fn exec(
        &self,
        action: &'static str,
        mut request: Parts,
        info: &RequestInfo,
        user: &User,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        self.check_create(user, info)?;
        let place = self.place(info, query.text("container"))?;
        if place.node.is_empty() {
            let why = format!("pod {} does not have a host assigned", info.name);
            return Err(Status::bad_request(why));
        }
        let wanted = wanted(query)?;
        self.expect_connected(&place.node)?;
        let start = self.start(action, uri(action, &place, wanted, query), place);
        command::answer(&mut request, wanted, start)
    }

    /// Asks the node to start the command.
    fn start(&self, action: &'static str, uri: String, place: Place) -> Start {
        let tunnels = self.tunnels.clone();
        Box::new(move |input| {
            Box::pin(async move {
                let request = Request::post(uri).body(input).map_err(Status::internal)?;
                let answer = tunnels.request(&place.node, request).await?;
                if !answer.status().is_success() {
                    return Err(refusal(answer, action, &place.pod).await);
                }
                Ok(answer.into_body().map_err(Into::into).boxed_unsync())
            })
        })
    }
}

fn wanted(query: &Query) -> Result<Wanted, Status> {
    let wanted = Wanted {
        stdin: query.flag("stdin"),
        stdout: query.flag("stdout"),
        stderr: query.flag("stderr"),
        tty: query.flag("tty"),
    };
    wanted.check()
}

fn uri(action: &str, place: &Place, wanted: Wanted, query: &Query) -> String {
    let mut passed = Query::default();
    for command in query.all("command") {
        passed.push("command", command);
    }
    let flags = [
        ("stdin", wanted.stdin),
        ("stdout", wanted.stdout),
        ("stderr", wanted.stderr),
        ("tty", wanted.tty),
    ];
    for (name, set) in flags {
        if set {
            passed.push(name, "true");
        }
    }
    format!(
        "http://node/{action}/{}/{}/{}/{}?{passed}",
        encode(&place.namespace),
        encode(&place.pod),
        encode(&place.uid),
        encode(&place.container)
    )
}
