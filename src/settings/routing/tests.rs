use super::*;

fn read(
    route: Option<&str>,
    health: Option<&str>,
    is_joining: bool,
) -> Result<Option<Routing>, BadSetting> {
    let args = AgentArgs {
        route_services: route.map(str::to_owned),
        proxy_healthz_bind_address: health.map(str::to_owned),
        ..AgentArgs::default()
    };
    routing(&args, is_joining)
}

#[test]
fn services_are_routed_unless_others_do() {
    let address = |text: &str| Some(text.parse().unwrap());
    let health_address = address("0.0.0.0:10256");
    assert_eq!(
        read(None, None, false).unwrap(),
        Some(Routing { health_address })
    );
    assert_eq!(read(None, None, true).unwrap(), None);
    assert_eq!(read(Some("false"), None, false).unwrap(), None);
    let health_address = address("[::1]:9");
    assert_eq!(
        read(Some("true"), Some("[::1]:9"), false).unwrap(),
        Some(Routing { health_address })
    );
    assert_eq!(
        read(None, Some("none"), false).unwrap(),
        Some(Routing {
            health_address: None
        })
    );
    for (route, health, is_joining) in [
        (Some("true"), None, true),
        (Some("maybe"), None, false),
        (None, Some("10256"), false),
    ] {
        assert!(
            read(route, health, is_joining).is_err(),
            "{route:?} {health:?}"
        );
    }
}

#[test]
fn a_pool_is_read_or_refused_by_its_flag() {
    assert!(pool(&[]).unwrap().is_empty());
    assert!(!pool(&["10.9.0.0/28".to_owned()]).unwrap().is_empty());
    let error = pool(&["10.9.0.0/28".to_owned(), "x".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("load-balancer-pool"), "{error}");
}
