//! Counts of one plugin's uses of secrets, and which of them have to be written down.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portway_admin::views;
use portway_runtime::{Recording, SecretAction, SecretUse};

use super::secret_ledger::{SecretLedger, UseLine};

/// What one plugin of one interface or destination used.
#[derive(Default)]
pub struct SecretTally {
    counts: Mutex<Vec<Arc<Count>>>,
    ledger: Option<Arc<SecretLedger>>,
}

struct Count {
    secret: String,
    action: SecretAction,
    uses: AtomicU64,
    /// As of the last line; 0: none was written.
    recorded: AtomicU64,
}

/// Who uses them.
pub struct User<'a> {
    pub interface: &'a str,
    pub destination: &'a str,
    pub plugin: &'a str,
}

impl SecretTally {
    pub fn new(ledger: Option<Arc<SecretLedger>>) -> SecretTally {
        SecretTally { counts: Mutex::default(), ledger }
    }

    /// Counts a use; what has to be written down before it happens comes back.
    pub fn count(&self, user: &User<'_>, used: SecretUse<'_>) -> Option<Recording> {
        let count = self.of(&used);
        let uses = count.uses.fetch_add(1, Ordering::Relaxed) + 1;
        let recorded = count.recorded.load(Ordering::Relaxed);
        let ledger = self.ledger.clone()?;
        if recorded > 0 && uses < recorded.saturating_mul(2) {
            return None;
        }
        let line = UseLine {
            at: ledger.now(),
            interface: user.interface.to_owned(),
            destination: user.destination.to_owned(),
            plugin: user.plugin.to_owned(),
            digest: used.digest.to_owned(),
            secret: used.secret.to_owned(),
            action: used.action.as_str(),
            uses,
        };
        Some(Box::new(move || record(&ledger, &count, &line)))
    }

    fn of(&self, used: &SecretUse<'_>) -> Arc<Count> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = counts.iter().find(|count| count.secret == used.secret && count.action == used.action);
        if let Some(known) = known {
            return known.clone();
        }
        // As many as there are grants: a use of anything else was denied.
        let count = Arc::new(Count {
            secret: used.secret.to_owned(),
            action: used.action,
            uses: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
        });
        counts.push(count.clone());
        count
    }

    /// Since the start.
    pub fn views(&self) -> Vec<views::SecretUses> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let view = |count: &Arc<Count>| views::SecretUses {
            secret: count.secret.clone(),
            action: count.action.as_str().to_owned(),
            count: count.uses.load(Ordering::Relaxed),
        };
        counts.iter().map(view).collect()
    }
}

fn record(ledger: &SecretLedger, count: &Count, line: &UseLine) -> Result<(), String> {
    let UseLine { interface, destination, plugin, secret, action, uses, .. } = line;
    if let Err(error) = ledger.record(line) {
        tracing::error!(%interface, %destination, %plugin, %secret, action, "cannot record the use of a secret: {error}");
        return Err("the use of the secret cannot be recorded".to_owned());
    }
    if count.recorded.fetch_max(*uses, Ordering::Relaxed) == 0 {
        tracing::info!(target: "secrets", %interface, %destination, %plugin, %secret, action, "first use");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: User<'_> = User { interface: "orders", destination: "shop", plugin: "signer" };
    const USED: SecretUse<'_> = SecretUse { secret: "KEY", action: SecretAction::Sign, digest: "ab" };

    #[test]
    fn the_first_use_and_each_doubling_are_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let tally = SecretTally::new(Some(SecretLedger::in_folder(dir.path())));
        let recorded: Vec<u64> = (1..=20)
            .filter(|_| tally.count(&USER, USED).map(|recording| recording().unwrap()).is_some())
            .collect();
        assert_eq!(recorded, [1, 2, 4, 8, 16]);
        assert_eq!(tally.views()[0].count, 20);
    }

    #[test]
    fn a_first_use_that_was_not_recorded_keeps_the_next_ones_from_happening() {
        let dir = tempfile::tempdir().unwrap();
        let tally = SecretTally::new(Some(SecretLedger::in_folder(&dir.path().join("none"))));
        for _ in 0..3 {
            let refused = tally.count(&USER, USED).expect("has to be recorded")();
            assert!(refused.unwrap_err().contains("cannot be recorded"));
        }
    }
}
