//! What the local API asks, answered for the project of now: it may change while the engine runs.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use portway_admin::views;
use portway_admin::{
    Action, BulkAction, ConfirmRetention, Control, ControlError, DestinationAction, DrainOrder, Edit,
    LaneAction, RemoveState, params,
};
use portway_model::MessageId;

use super::EngineControl;

/// See the file.
pub struct CurrentControl(RwLock<Arc<EngineControl>>);

impl CurrentControl {
    pub fn new(control: EngineControl) -> Self {
        CurrentControl(RwLock::new(Arc::new(control)))
    }

    /// What is asked from now on is answered by this one.
    pub fn set(&self, control: EngineControl) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(control);
    }

    fn now(&self) -> Arc<EngineControl> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Control for CurrentControl {
    async fn health(&self) -> views::Health {
        self.now().health().await
    }

    async fn status(&self) -> Result<views::Status, ControlError> {
        self.now().status().await
    }

    async fn list_messages(&self, list: params::ListMessages) -> Result<views::MessagePage, ControlError> {
        self.now().list_messages(list).await
    }

    async fn get_message(&self, id: MessageId) -> Result<Option<views::MessageDetail>, ControlError> {
        self.now().get_message(id).await
    }

    async fn get_body(&self, id: MessageId) -> Result<Option<Bytes>, ControlError> {
        self.now().get_body(id).await
    }

    async fn get_output(&self, id: MessageId, destination: &str) -> Result<Bytes, ControlError> {
        self.now().get_output(id, destination).await
    }

    async fn act(&self, action: Action) -> Result<views::ActionDone, ControlError> {
        self.now().act(action).await
    }

    async fn edit(&self, edit: Edit) -> Result<views::Edited, ControlError> {
        self.now().edit(edit).await
    }

    async fn act_all(&self, bulk: BulkAction) -> Result<Vec<views::BulkItem>, ControlError> {
        self.now().act_all(bulk).await
    }

    async fn act_on_destination(&self, action: DestinationAction) -> Result<(), ControlError> {
        self.now().act_on_destination(action).await
    }

    async fn act_on_lane(&self, action: LaneAction) -> Result<views::ActionDone, ControlError> {
        self.now().act_on_lane(action).await
    }

    async fn list_state(
        &self,
        interface: &str,
        destination: &str,
        list: params::ListState,
    ) -> Result<views::StatePage, ControlError> {
        self.now().list_state(interface, destination, list).await
    }

    async fn get_state(
        &self,
        interface: &str,
        destination: &str,
        state: params::GetState,
    ) -> Result<views::StateValue, ControlError> {
        self.now().get_state(interface, destination, state).await
    }

    async fn remove_state(&self, remove: RemoveState) -> Result<views::StateRemoved, ControlError> {
        self.now().remove_state(remove).await
    }

    async fn list_destination_actions(
        &self,
        interface: &str,
        destination: &str,
    ) -> Result<Vec<views::DestinationActionRecord>, ControlError> {
        self.now().list_destination_actions(interface, destination).await
    }

    async fn list_retention(&self) -> Result<views::Retentions, ControlError> {
        self.now().list_retention().await
    }

    async fn confirm_retention(
        &self,
        confirm: ConfirmRetention,
    ) -> Result<views::RetentionConfirmed, ControlError> {
        self.now().confirm_retention(confirm).await
    }

    async fn drain(&self, order: DrainOrder) -> Result<(), ControlError> {
        self.now().drain(order).await
    }

    async fn backup(&self, target: &Path) -> Result<views::Backup, ControlError> {
        self.now().backup(target).await
    }

    async fn list_refusals(&self) -> Result<Vec<views::Refused>, ControlError> {
        self.now().list_refusals().await
    }
}
