//! Names are the kubelet's: other programs, and a kubelet on the same disk, find them by it.

use super::{attachment, device, ephemeral_handle, published, staged};
use std::path::Path;

#[test]
fn places_are_where_the_kubelet_has_them() {
    let (root, pod) = (Path::new("/k"), Path::new("/k/pods/u"));
    // sha256 of "h".
    let hash = "aaa9402664f1a41f40ebbc52c9993eb66aeb366602958fdfaa283b71e64db123";
    assert_eq!(
        staged(root, "d.example", "h"),
        Path::new("/k/plugins/kubernetes.io/csi/d.example")
            .join(hash)
            .join("globalmount")
    );
    assert_eq!(
        published(pod, "pv"),
        Path::new("/k/pods/u/volumes/kubernetes.io~csi/pv/mount")
    );
    let device = device(root, "pv", "u");
    let all = Path::new("/k/plugins/kubernetes.io/csi/volumeDevices");
    assert_eq!(device.staged, all.join("staging/pv"));
    assert_eq!(device.published, all.join("publish/pv/u"));
    assert_eq!(device.data, all.join("pv/data"));
}

#[test]
fn handles_and_attachments_are_named_by_what_they_are_of() {
    // sha256 of "hdn" and of "uv".
    let hashed = |text: &str| super::hash(text);
    assert_eq!(attachment("h", "d", "n"), format!("csi-{}", hashed("hdn")));
    assert_eq!(ephemeral_handle("u", "v"), format!("csi-{}", hashed("uv")));
}
