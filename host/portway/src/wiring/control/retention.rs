//! Retention as the API sees it: the project's words beside what the store applied.

use portway_admin::views::{self, Time};
use portway_admin::{ConfirmRetention, ControlError, ControlErrorKind};
use portway_model::{Retention, RetentionState, code};
use portway_store::{Counted, RetentionView};

use super::{EngineControl, chain, failed, not_found, unavailable};

impl EngineControl {
    pub(super) async fn retentions(&self) -> Result<views::Retentions, ControlError> {
        let status = self.engine.status().await.map_err(|error| failed(code::ENGINE, chain(&error)))?;
        let age_now = status.retention.age_now;
        let found = self.store.list_retention(age_now).await.map_err(unavailable)?;
        Ok(views::Retentions {
            age_now: Time(age_now),
            clock: status.retention.doubt.map(|doubt| views::ClockDoubt {
                off_s: doubt.off.as_secs(),
                ahead: doubt.is_ahead,
                believed_in_s: doubt.after.as_secs(),
            }),
            interfaces: found.into_iter().map(|one| self.retention(one)).collect(),
        })
    }

    fn retention(&self, view: RetentionView) -> views::Retention {
        let RetentionView { name, state, confirmed, oldest, left, kept, .. } = view;
        let configured = self.project.interface(&name).map(|own| window(self.project.retention(own)));
        let left = left.map(|Counted { count, is_cut }| views::Counted { count, at_least: is_cut });
        let is_unconfirmed = state.unconfirmed().is_some();
        views::Retention {
            interface: name,
            configured,
            applied: window(state.applied),
            change: state.change.map(|change| views::RetentionChange {
                to: window(change.to),
                since: Time(change.since),
                left,
            }),
            waiting: state.waiting.map(|waiting| views::WaitingRetention {
                to: window(waiting.to),
                since: Time(waiting.since),
                needs_confirmation: is_unconfirmed,
                removes: left.filter(|_| state.change.is_none()),
            }),
            confirmed: confirmed.map(|confirmed| views::RetentionConfirmation {
                at: Time(confirmed.at),
                author: confirmed.author,
                reason: confirmed.reason,
            }),
            oldest: oldest.map(Time),
            kept: kept.map(|kept| views::KeptBeyond {
                pending: kept.pending,
                quarantined: kept.quarantined,
                counted_at: Time(kept.at),
            }),
        }
    }

    pub(super) async fn confirm(
        &self,
        confirm: ConfirmRetention,
    ) -> Result<views::RetentionConfirmed, ControlError> {
        let ConfirmRetention { interface: name, author, reason } = confirm;
        // What waits for an interface that left the project can be confirmed as well.
        let found = self.store.list_retention(portway_model::Timestamp(0)).await.map_err(unavailable)?;
        let own = found.iter().find(|view| view.name == name).map(|view| view.interface);
        let interface =
            own.ok_or_else(|| not_found(code::NO_INTERFACE, format!("there is no interface `{name}`")))?;
        let confirmed = self.engine.confirm_retention(interface, author, reason).await;
        match confirmed.map_err(|error| failed(code::NOT_DONE, chain(&error)))? {
            Some(state) => Ok(done(name, &state)),
            None => {
                let text = format!("no retention of interface `{name}` waits for a confirmation");
                Err(ControlError::new(ControlErrorKind::Conflict, code::NOTHING_TO_CONFIRM, text))
            }
        }
    }
}

fn done(interface: String, state: &RetentionState) -> views::RetentionConfirmed {
    let to = state.waiting.map_or(state.in_force(), |waiting| waiting.to);
    views::RetentionConfirmed { interface, to: window(to), in_force: state.waiting.is_none() }
}

fn window(retention: Retention) -> views::Window {
    views::Window {
        retention: retention.tier.as_str().to_owned(),
        quarantined: retention.quarantined.as_str().to_owned(),
    }
}
