//! Ranges that are good, and not written as upstream would have them.

use super::DIRECTIONS;
use crate::field::Path;
use crate::json;
use crate::names;
use crate::object::Object;
use serde_json::Value;

pub fn of(object: &Object) -> Vec<String> {
    let spec = object.get(&["spec"]).unwrap_or(&Value::Null);
    let mut warnings = Vec::new();
    for (direction, other_end) in DIRECTIONS {
        let path = Path::root("spec").child(direction);
        for (index, rule) in json::list(spec, direction).iter().enumerate() {
            let path = path.index(index).child(other_end);
            for (index, peer) in json::list(rule, other_end).iter().enumerate() {
                let path = path.index(index).child("ipBlock");
                let block = json::get(peer, "ipBlock");
                warnings.extend(range(json::get(block, "cidr"), &path.child("cidr")));
                for (index, except) in json::list(block, "except").iter().enumerate() {
                    warnings.extend(range(except, &path.child("except").index(index)));
                }
            }
        }
    }
    warnings
}

fn range(value: &Value, path: &Path) -> Option<String> {
    let text = value.as_str()?;
    let canonical = names::in_canonical_range(text)?;
    (text.contains(':') && canonical != text).then(|| {
        format!(
            "{path}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format \
             ({canonical:?})"
        )
    })
}
