//! Makes the schema of all kinds out of k8s-openapi's schemars output and the tables in `facts/`.

#[path = "schema"]
mod schema {
    pub mod compile;
    pub mod gather;
    pub mod roots;
}

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};

#[expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts by environment"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=schema");
    println!("cargo::rerun-if-changed=facts");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut gather = schema::gather::Gather::default();
    schema::roots::add(&mut gather);
    let definitions = gather.definitions();
    let facts = schema::compile::Facts::parse(|name| match name {
        "lists" => include_str!("facts/lists.tsv"),
        "go" => include_str!("facts/go.tsv"),
        "values" => include_str!("facts/values.tsv"),
        "required" => include_str!("facts/required.tsv"),
        "descriptions" => include_str!("facts/descriptions.tsv"),
        _ => include_str!("facts/unions.tsv"),
    });
    let texts = schema::compile::compile(&definitions, &facts);
    let mut kinds = String::new();
    for kind in &gather.kinds {
        let line = [&kind.schema, kind.group, kind.version, kind.kind].join("\t");
        kinds.push_str(&line);
        kinds.push('\n');
    }
    write(&out.join("structure.deflate"), &texts.structure);
    write(&out.join("descriptions.deflate"), &texts.descriptions);
    write(&out.join("kinds.deflate"), &kinds);
    let parameters = include_str!("facts/parameters.tsv");
    write(&out.join("parameters.deflate"), parameters);
    let protobuf = include_str!("facts/protobuf.tsv");
    write(&out.join("protobuf.deflate"), protobuf);
}

fn write(path: &Path, text: &str) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).expect("a Vec takes all");
    std::fs::write(path, encoder.finish().expect("a Vec takes all")).expect("OUT_DIR is writable");
}
