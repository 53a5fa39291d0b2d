//! Rates: since its process began, a destination was sent no more than its rate allows.

use std::time::Duration;

use portway_engine::DestinationSettings;

/// What was handed over to a destination, of what its rate allows.
#[derive(Debug, Default)]
pub struct Meter {
    since: Duration,
    sent: u64,
}

impl Meter {
    pub fn new(since: Duration) -> Self {
        Meter { since, sent: 0 }
    }

    /// So many are handed over.
    pub fn begin(
        &mut self,
        count: usize,
        settings: &DestinationSettings,
        monotonic: Duration,
    ) -> super::Verdict {
        self.sent += count as u64;
        let Some(limit) = settings.rate else { return Ok(()) };
        let elapsed = monotonic.saturating_sub(self.since);
        let most = u64::from(limit.capacity()) + u64::from(limit.rate.within(elapsed));
        if self.sent > most {
            return Err(format!(
                "destination {} was sent {} in {elapsed:?}, {most} are allowed",
                settings.id, self.sent
            ));
        }
        Ok(())
    }

    /// It turned out that so many were not sent.
    pub fn give_back(&mut self, count: usize) {
        self.sent = self.sent.saturating_sub(count as u64);
    }
}
