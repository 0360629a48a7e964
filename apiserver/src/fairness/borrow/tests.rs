//! Divisions, by hand and by chance.

use super::*;
use proptest::prelude::*;

fn claim(lower: f64, upper: f64, target: f64) -> Claim {
    Claim {
        lower,
        upper,
        target,
    }
}

fn seats(total: f64, claims: &[Claim]) -> Vec<f64> {
    let division = divide(total, claims).unwrap();
    division
        .seats
        .iter()
        .map(|seats| (seats * 100.0).round() / 100.0)
        .collect()
}

#[test]
fn all_get_the_same_fraction_of_what_they_need() {
    let claims = [claim(0.0, 100.0, 10.0), claim(0.0, 100.0, 30.0)];
    assert_eq!(seats(20.0, &claims), [5.0, 15.0]);
    assert_eq!(seats(80.0, &claims), [20.0, 60.0]);
}

#[test]
fn bounds_hold_and_the_others_share_the_rest() {
    let claims = [
        claim(8.0, 100.0, 8.0),
        claim(0.0, 12.0, 30.0),
        claim(0.0, 100.0, 30.0),
    ];
    assert_eq!(seats(24.0, &claims), [8.0, 8.0, 8.0]);
    assert_eq!(seats(40.0, &claims), [8.0, 12.0, 20.0]);
}

#[test]
fn a_level_that_needs_nothing_gets_what_nobody_else_may_have() {
    let claims = [claim(0.0, 100.0, 0.0), claim(0.0, 10.0, 50.0)];
    assert_eq!(seats(30.0, &claims), [20.0, 10.0]);
}

#[test]
fn what_cannot_be_divided_is_said_to_be() {
    assert_eq!(divide(3.0, &[claim(4.0, 9.0, 5.0)]), None);
    assert_eq!(divide(10.0, &[claim(4.0, 9.0, 5.0)]), None);
    assert_eq!(seats(4.0, &[claim(4.0, 9.0, 5.0)]), [4.0]);
    assert_eq!(seats(9.0, &[claim(4.0, 9.0, 5.0)]), [9.0]);
    assert!(divide(0.0, &[]).unwrap().seats.is_empty());
}

proptest! {
    #[test]
    fn a_division_adds_up_and_keeps_bounds(
        parts in prop::collection::vec((0_u32..50, 0_u32..50, 0_u32..80), 1..10),
        share in 0.0_f64..1.0,
    ) {
        let claims: Vec<Claim> = parts
            .iter()
            .map(|(lower, more, over)| {
                let lower = f64::from(*lower);
                claim(lower, lower + f64::from(*more), lower + f64::from(*over))
            })
            .collect();
        let lowest: f64 = claims.iter().map(|claim| claim.lower).sum();
        let highest: f64 = claims.iter().map(|claim| claim.upper).sum();
        let total = lowest + (highest - lowest) * share;
        let division = divide(total, &claims).unwrap();
        let sum: f64 = division.seats.iter().sum();
        prop_assert!((sum - total).abs() < 1e-6, "{sum} of {total}");
        for (claim, seats) in claims.iter().zip(&division.seats) {
            prop_assert!(*seats >= claim.lower - 1e-9 && *seats <= claim.upper + 1e-9);
        }
    }
}
