use super::{IdRange, SandboxConfig};

#[test]
fn ids_past_the_range_are_nobodys() {
    let range = IdRange {
        first: 65_536,
        count: 65_536,
    };
    assert_eq!(range.map(0), Some(65_536));
    assert_eq!(range.map(65_535), Some(131_071));
    assert_eq!(range.map(65_536), None);
    assert_eq!(range.map(u32::MAX), None);
    let mut config = SandboxConfig::default();
    assert_eq!(config.id_on_node(100_000), Some(100_000));
    config.id_range = Some(range);
    assert_eq!(config.id_on_node(100_000), None);
}
