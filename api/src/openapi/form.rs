//! How a document is written, and which way an `Accept` header asks for.

/// Content type of v2 in protocol buffers.
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// Content type of v3 in protocol buffers.
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

/// How many media ranges of an `Accept` header are looked at; kubectl sends two.
const MEDIA_RANGES_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Protobuf,
}

/// Which documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Documents {
    V2,
    V3,
}

impl Documents {
    pub fn content_type(self, form: Form) -> &'static str {
        match (self, form) {
            (_, Form::Json) => "application/json",
            (Self::V2, Form::Protobuf) => V2_PROTOBUF,
            (Self::V3, Form::Protobuf) => V3_PROTOBUF,
        }
    }

    /// The form that an `Accept` header likes best; `None` when it takes none of them: 406.
    pub fn negotiate(self, accept: &str) -> Option<Form> {
        let accept = if accept.trim().is_empty() {
            "*/*"
        } else {
            accept
        };
        let ranges = accept.split(',').take(MEDIA_RANGES_MAX);
        let mut ranges: Vec<(u16, bool, bool, &str)> = ranges
            .map(|range| {
                let name = range.split(';').next().unwrap_or("").trim();
                let quality = crate::discovery::weight(range);
                let any_type = name.starts_with('*');
                (quality, any_type, name.ends_with('*'), name)
            })
            .collect();
        ranges.sort_by_key(|(quality, any_type, any_subtype, _)| {
            (std::cmp::Reverse(*quality), *any_type, *any_subtype)
        });
        ranges.into_iter().find_map(|range| self.form(range.3))
    }

    fn form(self, name: &str) -> Option<Form> {
        if matches!(
            name,
            "*/*" | "*" | "application/*" | "application/json" | "*/json"
        ) {
            return Some(Form::Json);
        }
        // Go clients ask with an at sign, which makes it no valid media type: answers never do.
        let protobuf = self.content_type(Form::Protobuf);
        (name.replace('@', ".") == protobuf).then_some(Form::Protobuf)
    }
}
