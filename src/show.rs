//! What commands print for people: versions and tables.

use serde_json::Value;
use std::io::Write;

/// The Kubernetes version whose API is served.
pub const KUBERNETES_VERSION: &str = "v1.36.0";

/// Standard output may be a closed pipe (`coracle version | head -0`): that is no error.
pub fn line(text: &str) {
    drop(writeln!(std::io::stdout(), "{text}"));
}

pub fn version() {
    line(&format!(
        "coracle {} (Kubernetes {KUBERNETES_VERSION})",
        env!("CARGO_PKG_VERSION")
    ));
}

/// Rows in columns, three spaces apart, as kubectl prints them.
pub fn columns(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|text| text.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let print = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, width) in cells.zip(&widths) {
            text.push_str(&format!("{cell:<width$}   "));
        }
        text.trim_end().to_owned()
    };
    let mut lines = vec![print(&mut header.iter().copied())];
    lines.extend(
        rows.iter()
            .map(|row| print(&mut row.iter().map(String::as_str))),
    );
    lines.join("\n")
}

/// A meta.k8s.io/v1 Table as `kubectl get` prints it; `wide` adds the columns of `-o wide`.
pub fn table(table: &Value, wide: bool) -> String {
    let none = Vec::new();
    let definitions = table["columnDefinitions"].as_array().unwrap_or(&none);
    let shown: Vec<usize> = (0..definitions.len())
        .filter(|index| wide || definitions[*index]["priority"].as_i64() == Some(0))
        .collect();
    let names: Vec<String> = shown
        .iter()
        .map(|index| {
            definitions[*index]["name"]
                .as_str()
                .unwrap_or("")
                .to_uppercase()
        })
        .collect();
    let rows: Vec<Vec<String>> = table["rows"]
        .as_array()
        .unwrap_or(&none)
        .iter()
        .map(|row| {
            shown
                .iter()
                .map(|index| cell(&row["cells"][*index]))
                .collect()
        })
        .collect();
    columns(&names.iter().map(String::as_str).collect::<Vec<_>>(), &rows)
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<none>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
