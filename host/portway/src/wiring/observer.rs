//! What plugins say beside their verdicts: log lines, notices, faults.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use portway_admin::views;
use portway_model::code;
use portway_runtime::{Fault, Level, Observer, Recording, SecretUse};

use super::secret_ledger::SecretLedger;
use super::secret_tally::{SecretTally, User};

/// Codes that are counted apart; further ones share the last place.
const CODES_MAX: usize = 32;
/// Where codes beyond the limit are counted.
const OTHER: &str = code::OTHER;

/// Listens to one plugin of one interface or destination.
pub struct PluginObserver {
    interface: String,
    destination: String,
    plugin: String,
    notices: Mutex<Vec<views::Notice>>,
    /// By kind.
    faults: Mutex<BTreeMap<&'static str, u64>>,
    secrets: SecretTally,
}

impl PluginObserver {
    /// `destination` is empty for a source.
    pub fn new(interface: &str, destination: &str, plugin: &str) -> Arc<PluginObserver> {
        PluginObserver::recording(interface, destination, plugin, None)
    }

    /// The same, where uses of secrets are written down.
    pub fn recording(
        interface: &str,
        destination: &str,
        plugin: &str,
        ledger: Option<Arc<SecretLedger>>,
    ) -> Arc<PluginObserver> {
        Arc::new(PluginObserver {
            interface: interface.to_owned(),
            destination: destination.to_owned(),
            plugin: plugin.to_owned(),
            notices: Mutex::default(),
            faults: Mutex::default(),
            secrets: SecretTally::new(ledger),
        })
    }

    /// As the project calls it.
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Empty for a source.
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// What it noticed since the start, by code.
    pub fn notices(&self) -> Vec<views::Notice> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it did beside its work. A source's notices are told with the source.
    fn counts(&self) -> views::PluginCounts {
        let is_source = self.destination.is_empty();
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = |(kind, count): (&&str, &u64)| views::Count { reason: (*kind).to_owned(), count: *count };
        views::PluginCounts {
            plugin: self.plugin.clone(),
            destination: (!is_source).then(|| self.destination.clone()),
            faults: faults.iter().map(fault).collect(),
            notices: if is_source { Vec::new() } else { self.notices() },
            secrets: self.secrets.views(),
        }
    }
}

/// Those who listen to plugins, by interface.
pub type Observers = HashMap<String, Vec<Arc<PluginObserver>>>;

/// What the plugins of one interface did beside their work, those that did; a plugin that a
/// destination uses twice is told once.
pub fn plugin_counts(observers: &[Arc<PluginObserver>]) -> Vec<views::PluginCounts> {
    let mut all: Vec<views::PluginCounts> = Vec::new();
    for observer in observers {
        let new = observer.counts();
        let is_same = |known: &&mut views::PluginCounts| {
            known.plugin == new.plugin && known.destination == new.destination
        };
        let Some(known) = all.iter_mut().find(is_same) else {
            all.push(new);
            continue;
        };
        add(known, new);
    }
    all.retain(|counts| {
        !counts.faults.is_empty() || !counts.notices.is_empty() || !counts.secrets.is_empty()
    });
    all
}

/// Adds what another use of the same plugin did.
fn add(known: &mut views::PluginCounts, new: views::PluginCounts) {
    for fault in new.faults {
        match known.faults.iter_mut().find(|one| one.reason == fault.reason) {
            Some(one) => one.count += fault.count,
            None => known.faults.push(fault),
        }
    }
    for notice in new.notices {
        match known.notices.iter_mut().find(|one| one.code == notice.code) {
            Some(one) => one.count += notice.count,
            None => known.notices.push(notice),
        }
    }
    for used in new.secrets {
        match known.secrets.iter_mut().find(|one| one.secret == used.secret && one.action == used.action) {
            Some(one) => one.count += used.count,
            None => known.secrets.push(used),
        }
    }
}

impl Observer for PluginObserver {
    fn log(&self, level: Level, text: &str) {
        let PluginObserver { interface, destination, plugin, .. } = self;
        match level {
            Level::Trace => tracing::trace!(target: "plugin", %interface, %destination, %plugin, "{text}"),
            Level::Debug => tracing::debug!(target: "plugin", %interface, %destination, %plugin, "{text}"),
            Level::Info => tracing::info!(target: "plugin", %interface, %destination, %plugin, "{text}"),
            Level::Warn => tracing::warn!(target: "plugin", %interface, %destination, %plugin, "{text}"),
            Level::Error => tracing::error!(target: "plugin", %interface, %destination, %plugin, "{text}"),
        }
    }

    fn notice(&self, code: &str, text: &str) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = notices.iter().any(|notice| notice.code == code);
        let code = if is_known || notices.len() < CODES_MAX { code } else { OTHER };
        match notices.iter_mut().find(|notice| notice.code == code) {
            Some(notice) => {
                notice.count += 1;
                text.clone_into(&mut notice.text);
            }
            None => {
                let notice = views::Notice { code: code.to_owned(), count: 1, text: text.to_owned() };
                tracing::info!(target: "plugin", interface = %self.interface, plugin = %self.plugin, code, "{text}");
                notices.push(notice);
            }
        }
    }

    fn fault(&self, fault: &Fault) {
        let PluginObserver { interface, destination, plugin, .. } = self;
        let (kind, fuel, memory_bytes) = (fault.kind.as_str(), fault.fuel, fault.memory_bytes);
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
        let digest = fault.digest.get(..12).unwrap_or(&fault.digest);
        tracing::warn!(%interface, %destination, %plugin, kind, fuel, memory_bytes, digest, "{fault}");
    }

    fn secret(&self, used: SecretUse<'_>) -> Option<Recording> {
        let PluginObserver { interface, destination, plugin, .. } = self;
        self.secrets.count(&User { interface, destination, plugin }, used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_beyond_the_limit_are_counted_together() {
        let observer = PluginObserver::new("lab", "", "mllp");
        for number in 0..40 {
            observer.notice(&format!("code-{number}"), "text");
        }
        observer.notice("code-3", "newest");
        let notices = observer.notices();
        assert_eq!(notices.len(), CODES_MAX + 1);
        assert_eq!((notices[3].count, notices[3].text.as_str()), (2, "newest"));
        assert_eq!((notices[CODES_MAX].code.as_str(), notices[CODES_MAX].count), (OTHER, 8));
    }

    #[test]
    fn a_plugin_that_a_destination_uses_twice_is_told_once() {
        let all = [
            PluginObserver::new("lab", "api", "json-map"),
            PluginObserver::new("lab", "api", "json-map"),
            PluginObserver::new("lab", "", "mllp"),
            PluginObserver::new("lab", "quiet", "json-map"),
        ];
        for observer in &all[..3] {
            observer.notice("odd", "text");
        }
        *all[2].faults.lock().unwrap().entry("trap").or_default() += 1;
        let counts = plugin_counts(&all);
        assert_eq!(counts.len(), 2);
        assert_eq!((counts[0].destination.as_deref(), counts[0].notices[0].count), (Some("api"), 2));
        // Its notices are told with the source.
        assert_eq!((counts[1].faults[0].count, counts[1].notices.len()), (1, 0));
    }
}
