//! `cargo xtask crash`: real engines under load, killed at random moments and restarted.
//!
//! The generators write ledgers of what was acknowledged; the receiver writes one of what arrived,
//! and the file destination is its own. At the end every acknowledged message must be in both, each
//! key in order; repeats are counted. With a database it may be the database's server that is killed,
//! or both; or two engines on it take over from each other. The seed chooses every moment.

mod alone;
mod ledger;
mod line;
mod reckoning;
mod side;
mod takeover;

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

use crate::project::Binary;

pub const USAGE: &str =
    "crash [--store postgres --kill engine|database|both|takeover] --rounds N [--seed S] [--no-build]";

/// For everything that is waited for: a machine may be busy, and what many takeovers leave is much to do.
const PATIENCE: Duration = Duration::from_secs(300);
/// An engine lives for so long in a round, at least and at most.
const LIFE_MS: (u64, u64) = (150, 1_500);

/// What is killed in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The engine, on a store in a file.
    Engine,
    /// The engine, on a database.
    EngineOnDatabase,
    /// The server of the database.
    Database,
    /// Both at once.
    Both,
    /// Of two engines the one that delivers.
    Owner,
}

/// What is wanted of a run.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub rounds: u32,
    pub victim: Victim,
    pub binary: Binary,
    /// None: one is drawn, and said.
    pub seed: Option<u64>,
}

impl Wanted {
    pub fn new(rounds: u32, victim: Victim, binary: Binary) -> Wanted {
        Wanted { rounds, victim, binary, seed: None }
    }

    /// The words after `crash`.
    pub fn parse(words: &[&str]) -> Result<Wanted> {
        let (mut store, mut kill, mut rounds, mut seed) = (None, None, None, None);
        let mut binary = Binary::ToBeBuilt;
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let place = match word {
                "--no-build" => {
                    binary = Binary::AsTested;
                    continue;
                }
                "--store" => &mut store,
                "--kill" => &mut kill,
                "--rounds" => &mut rounds,
                "--seed" => &mut seed,
                _ => bail!("`{word}` is not known; usage: {USAGE}"),
            };
            *place = Some(words.next().with_context(|| format!("`{word}` needs a value; usage: {USAGE}"))?);
        }
        let victim = match (store, kill) {
            (None, None | Some("engine")) => Victim::Engine,
            (Some("postgres"), Some("engine")) => Victim::EngineOnDatabase,
            (Some("postgres"), Some("database")) => Victim::Database,
            (Some("postgres"), Some("both")) => Victim::Both,
            (Some("postgres"), Some("takeover")) => Victim::Owner,
            _ => bail!("usage: {USAGE}"),
        };
        let rounds = rounds.with_context(|| format!("usage: {USAGE}"))?;
        let rounds = rounds.parse().with_context(|| format!("`{rounds}` is no number of rounds"))?;
        let number = |seed: &str| seed.parse().with_context(|| format!("`{seed}` is no seed"));
        Ok(Wanted { rounds, victim, binary, seed: seed.map(number).transpose()? })
    }
}

/// Kills so many times, then counts.
pub fn crash(root: &Path, wanted: &Wanted) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let seed = wanted.seed.unwrap_or_else(|| u64::from(now.subsec_nanos()));
    let Wanted { rounds, victim, .. } = wanted;
    println!("crash: {rounds} rounds of {victim:?}, moments drawn from seed {seed}");
    let chance = Chance::new(seed);
    match victim {
        Victim::Engine | Victim::EngineOnDatabase | Victim::Database | Victim::Both => {
            alone::crash(root, wanted, chance)
        }
        Victim::Owner => takeover::crash(root, wanted, chance),
    }
}

/// Chooses moments, always the same for a seed.
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Chance {
        // Spread, since small seeds differ in few bits; and the machine must not begin at zero.
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1))
    }

    /// A step of xorshift.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }

    fn life(&mut self) -> Duration {
        Duration::from_millis(LIFE_MS.0 + self.below(LIFE_MS.1 - LIFE_MS.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_what_is_killed_how_often_and_from_which_seed() {
        let wanted = |words: &str| Wanted::parse(&words.split(' ').collect::<Vec<_>>());
        let alone = wanted("--rounds 20").unwrap();
        assert_eq!((alone.victim, alone.rounds, alone.seed), (Victim::Engine, 20, None));
        let pair = wanted("--store postgres --kill takeover --seed 7 --rounds 3 --no-build").unwrap();
        assert_eq!((pair.victim, pair.seed, pair.binary), (Victim::Owner, Some(7), Binary::AsTested));
        for wrong in ["--rounds", "--rounds x", "--kill takeover --rounds 1", "--seed 1", "--rounds 1 --fast"]
        {
            assert!(wanted(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_seed_draws_the_same_moments_again() {
        let draw = |seed| {
            let mut chance = Chance::new(seed);
            (0..20).map(|_| chance.life()).collect::<Vec<_>>()
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(4));
        assert!(draw(0).iter().all(|life| (150..1_500).contains(&life.as_millis())));
    }
}
