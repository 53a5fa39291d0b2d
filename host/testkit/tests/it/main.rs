//! The simulation as a test: a few fixed seeds. Many more run in `cargo xtask sim`.

use portway_testkit::{Trace, simulate};

#[test]
fn a_fixed_set_of_seeds_breaks_no_rule() {
    for seed in 0..100 {
        if let Err(violation) = simulate(seed, Trace::Off) {
            panic!("{violation}");
        }
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 14, 15] {
        let first = simulate(seed, Trace::Off).map_err(|violation| violation.to_string());
        let again = simulate(seed, Trace::On).map_err(|violation| violation.to_string());
        assert_eq!(first, again);
    }
}
