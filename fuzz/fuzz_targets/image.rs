//! Documents of images and their names: what a registry or an archive says about an image is read
//! or refused, and a name that was taken stays what it is.
#![no_main]
#![allow(dead_code)]

#[path = "../../agent/src/images/manifest.rs"]
mod manifest;
#[path = "../../agent/src/images/reference.rs"]
mod reference;

use libfuzzer_sys::fuzz_target;
use manifest::{Document, ImageDocument, Platform, choose};
use reference::Reference;

fuzz_target!(|data: &[u8]| {
    if let Ok(document) = serde_json::from_slice::<Document>(data) {
        let host = Platform::host();
        if let Some(chosen) = choose(&document.manifests, &host) {
            let platform = chosen.platform.as_ref();
            assert!(platform.is_none_or(|platform| platform.os == host.os));
            assert!(platform.is_some() || document.manifests.len() == 1);
        }
        for named in document.layers.iter().flat_map(|layer| &layer.annotations) {
            check_name(named.1);
        }
    }
    let _ = serde_json::from_slice::<ImageDocument>(data);
    if let Ok(name) = std::str::from_utf8(data) {
        check_name(name);
    }
});

fn check_name(name: &str) {
    let Ok(reference) = Reference::parse(name) else {
        return;
    };
    let canonical = reference.canonical();
    let again = Reference::parse(&canonical).expect("it was taken before");
    assert_eq!(again.canonical(), canonical);
    assert_eq!(
        (&again.domain, &again.path),
        (&reference.domain, &reference.path)
    );
    let parts = || reference.path.split('/').chain([reference.domain.as_str()]);
    assert!(
        parts().all(|part| !part.is_empty() && part != ".."),
        "{name:?}"
    );
    assert!(!canonical.contains(['\n', '\0', '?', '#', ' ']), "{name:?}");
}
