//! Means over time, and what is remembered of them.

use super::*;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn an_integrator_weighs_by_time() {
    let mut integrator = Integrator::new(at(10));
    integrator.set(at(10), 4.0);
    integrator.set(at(13), 0.0);
    let observed = integrator.take(at(14));
    assert_eq!(observed.elapsed, at(4));
    assert!((observed.average - 3.0).abs() < 1e-9);
    assert!((observed.deviation - 3.0_f64.sqrt()).abs() < 1e-9);
    assert!((observed.max - 4.0).abs() < 1e-9);
    // The next period begins with what is so now.
    integrator.set(at(15), 2.0);
    let observed = integrator.take(at(16));
    assert!((observed.average - 1.0).abs() < 1e-9);
    assert!((observed.max - 2.0).abs() < 1e-9);
}

#[test]
fn no_time_at_all_has_a_maximum_alone() {
    let mut integrator = Integrator::new(at(1));
    integrator.set(at(1), 7.0);
    let observed = integrator.take(at(1));
    assert!(observed.elapsed.is_zero());
    let mut demand = Demand {
        smoothed: 5.0,
        ..Demand::default()
    };
    demand.update(&observed);
    assert_eq!(demand.high_watermark, 7);
    assert!((demand.smoothed - 5.0).abs() < 1e-9);
}

#[test]
fn demand_rises_at_once_and_falls_by_half_in_five_minutes() {
    let mut demand = Demand::default();
    let busy = Observed {
        elapsed: at(10),
        average: 80.0,
        deviation: 20.0,
        max: 120.0,
    };
    demand.update(&busy);
    assert!((demand.smoothed - 100.0).abs() < 1e-9);
    let idle = Observed {
        elapsed: at(10),
        ..Observed::default()
    };
    for _ in 0..30 {
        demand.update(&idle);
    }
    assert!((demand.smoothed - 50.0).abs() < 1.0, "{}", demand.smoothed);
    assert_eq!(demand.high_watermark, 0);
}
