//! Files of a volume that come to lie in one place.

use crate::json;
use serde_json::Value;

/// A path in a volume, and the words for where it comes from; empty where all come from one place.
type Placed = (String, String);

/// Texts about the volumes of a pod spec.
pub fn of(volumes: &[Value]) -> Vec<String> {
    let mut warnings = Vec::new();
    for volume in volumes {
        let name = json::text(volume, "name");
        let mut warn = |what: &str, text: &str| {
            warnings.push(format!(
                "volume \"{name}\" ({what}): overlapping paths: {text}"
            ));
        };
        for (kind, word, field) in [
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let source = json::get(volume, kind);
            let what = match field {
                "" => word.to_owned(),
                field => format!("{word} \"{}\"", json::text(source, field)),
            };
            let mut placed = Vec::new();
            for path in paths(source) {
                for text in place(&mut placed, (path, String::new())) {
                    warn(&what, &text);
                }
            }
        }
        let mut placed = Vec::new();
        for source in json::list(json::get(volume, "projected"), "sources") {
            if json::is_empty(source) {
                warnings.push(format!(
                    "volume \"{name}\" (Projected) has no sources provided"
                ));
                continue;
            }
            for projected in projected(source) {
                for text in place(&mut placed, projected) {
                    warnings.push(format!(
                        "volume \"{name}\" (Projected): overlapping paths: {text}"
                    ));
                }
            }
        }
    }
    warnings
}

fn paths(source: &Value) -> Vec<String> {
    let items = json::list(source, "items").iter();
    items
        .map(|item| json::text(item, "path").to_owned())
        .collect()
}

/// The paths of one projected source.
fn projected(source: &Value) -> Vec<Placed> {
    for (kind, word) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        let inner = json::get(source, kind);
        if !json::list(inner, "items").is_empty() {
            let from = format!("{word} \"{}\"", json::text(inner, "name"));
            let all = paths(inner).into_iter();
            return all.map(|path| (path, from.clone())).collect();
        }
    }
    let downward = json::get(source, "downwardAPI");
    if !json::list(downward, "items").is_empty() {
        let all = paths(downward).into_iter();
        return all.map(|path| (path, "DownwardAPI".to_owned())).collect();
    }
    match json::some(source, "serviceAccountToken") {
        Some(token) => {
            let path = json::text(token, "path").to_owned();
            vec![(path, "ServiceAccountToken".to_owned())]
        }
        None => Vec::new(),
    }
}

/// Puts a path beside those that are there; a text for each that it runs into.
fn place(placed: &mut Vec<Placed>, (path, from): Placed) -> Vec<String> {
    let path = path.trim_end_matches('/').to_owned();
    let shown = |path: &str, from: &str| match from {
        "" => format!("\"{path}\""),
        from => format!("\"{path}\" ({from})"),
    };
    let under = |inner: &str, outer: &str| format!("{inner}/").starts_with(&format!("{outer}/"));
    let texts = placed
        .iter()
        .filter(|(other, _)| !path.is_empty() && !other.is_empty())
        .filter(|(other, _)| under(other, &path) || under(&path, other))
        .map(|(other, source)| format!("{} with {}", shown(&path, &from), shown(other, source)))
        .collect();
    placed.push((path, from));
    texts
}
