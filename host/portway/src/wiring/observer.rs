//! What plugins say beside their verdicts: log lines, notices, faults.

use std::sync::{Arc, Mutex, PoisonError};

use portway_admin::views;
use portway_model::code;
use portway_runtime::{Fault, Level, Observer};

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
}

impl PluginObserver {
    /// `destination` is empty for a source.
    pub fn new(interface: &str, destination: &str, plugin: &str) -> Arc<PluginObserver> {
        Arc::new(PluginObserver {
            interface: interface.to_owned(),
            destination: destination.to_owned(),
            plugin: plugin.to_owned(),
            notices: Mutex::default(),
        })
    }

    /// What it noticed since the start, by code.
    pub fn notices(&self) -> Vec<views::Notice> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let digest = fault.digest.get(..12).unwrap_or(&fault.digest);
        tracing::warn!(%interface, %destination, %plugin, kind, fuel, memory_bytes, digest, "{fault}");
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
}
