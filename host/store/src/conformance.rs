//! What every store does: a function for each behaviour, run against each store.
//!
//! A store's tests call [`crate::conformance_cases!`] with a [`Harness`] that opens it. A case
//! panics where a store differs; it leaves nothing behind.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a panic is the result of a failed case")]

pub mod actions;
pub mod alike;
pub mod cursors;
pub mod destinations;
mod fixture;
pub mod intake;
pub mod keeping;
pub mod listing;
pub mod migrations;
pub mod order;
pub mod ownership;
pub mod results;
pub mod retention;
pub mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use crate::Store;

/// Opens the store under test.
#[async_trait]
pub trait Harness: Send + Sync {
    /// A new, empty store.
    async fn open(&self) -> Arc<dyn Store>;
    /// The same store after its process died. Nothing else holds `store` any more.
    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store>;
    /// The same store as another engine has it; none: one engine at a time.
    async fn another(&self, store: &Arc<dyn Store>) -> Option<Arc<dyn Store>>;
    /// Where a backup can be made; none: the store has no backups of its own, and says so.
    fn backup_path(&self) -> Option<PathBuf>;
    /// A backup that `store` made, as a store. Asked only where there is a path for one.
    async fn open_backup(&self, store: &Arc<dyn Store>, path: &Path) -> Arc<dyn Store>;
}

/// Makes a test of every case. The argument makes a [`Harness`].
#[macro_export]
macro_rules! conformance_cases {
    ($harness:expr) => {
        $crate::conformance_cases! {
            @ $harness;
            intake:
                ids_rise_in_batch_order
                a_message_reads_back_as_it_was_stored
                bodies_of_every_size_read_back
                batches_of_every_size_are_stored
                a_repeated_body_is_a_duplicate
                a_duplicate_within_a_batch_is_found
                another_body_is_a_conflict
                the_newest_body_of_a_key_counts
                a_dedupe_key_expires_with_its_window
                without_a_window_a_dedupe_key_is_not_looked_up
                dedupe_keys_belong_to_their_interface
                doubt_quarantines_at_once
                a_message_without_deliveries_is_finished
                a_refused_row_stores_nothing
                a_corrected_copy_and_its_original_know_each_other;
            results:
                a_sent_delivery_finishes_its_message
                the_status_of_a_message_follows_its_deliveries
                a_result_counts_only_once
                a_result_of_another_round_is_stale
                a_result_for_what_is_not_there_is_stale
                results_of_one_batch_count_in_order
                stale_results_do_not_stop_the_others
                a_retry_stays_pending
                answers_and_failures_are_reasons
                routes_are_stored_with_their_result
                routes_of_a_stale_result_are_not_stored
                large_routes_are_stored_or_leave_nothing
                failed_attempts_are_recorded
                what_a_sender_was_given_is_kept
                what_the_sender_of_a_quarantined_message_was_given_is_kept
                a_large_batch_of_mixed_results_is_stored;
            order:
                destinations_with_work_are_those_with_pending_deliveries
                lane_heads_are_the_first_of_each_lane
                held_heads_are_the_first_quarantined_of_each_lane
                a_lane_is_read_in_order_from_a_message_on
                a_lane_tells_attempts_and_due_times
                what_is_due_apart_is_not_in_the_lane
                what_is_due_is_read_by_time;
            actions:
                a_resent_delivery_goes_apart_in_the_next_round
                a_quarantined_delivery_can_keep_its_lane
                resend_leaves_pending_deliveries_alone
                resend_can_mean_one_destination
                dismiss_ends_pending_and_quarantined_deliveries
                actions_of_one_batch_follow_each_other
                an_action_follows_the_results_of_its_batch
                an_action_needs_its_message_and_its_body
                actions_are_listed
                suspects_are_counted_until_a_result
                what_waits_for_its_time_can_be_tried_now_in_its_place
                a_resent_delivery_is_no_suspect
                a_request_is_done_once;
            destinations:
                a_pause_outlives_the_process_until_it_is_resumed
                actions_on_a_destination_are_listed_newest_first
                an_action_needs_its_destination;
            listing:
                messages_are_listed_newest_first_in_pages
                messages_are_listed_by_what_is_asked_for
                what_is_not_there_is_not_listed
                messages_are_loaded_by_id
                queues_tell_what_waits
                messages_are_found_by_what_their_interface_makes_searchable
                messages_are_found_by_time_and_by_text_of_attributes
                what_was_removed_is_not_found;
            cursors:
                a_cursor_is_kept_with_the_messages_before_it
                a_refused_write_leaves_the_cursor
                a_cursor_outlives_the_process
                pending_deliveries_are_counted_up_to_a_limit;
            state:
                state_is_stored_with_the_result_it_came_with
                a_later_write_of_a_key_replaces_or_removes_it
                state_of_a_stale_result_is_not_stored
                state_outside_its_limits_or_of_what_failed_is_refused
                keys_of_state_are_listed_in_byte_order
                state_outlives_the_process_and_the_messages_it_came_with
                an_operator_removes_one_value_and_a_pause_stays;
            keeping:
                numbers_are_never_given_twice
                registering_names_the_same_again_changes_nothing
                a_store_keeps_its_name
                writes_outlive_the_process
                a_mark_tells_whether_a_write_happened
                a_failed_write_leaves_no_mark
                an_empty_batch_is_a_write
                numbers_of_removed_messages_are_not_reused
                a_backup_is_a_store
                a_store_can_be_maintained;
            ownership:
                an_unclean_end_is_told_once
                each_owner_has_an_epoch_of_its_own
                a_result_of_an_earlier_epoch_counts_only_if_it_is_sent
                an_engine_owns_all_it_asks_for_or_nothing
                what_is_sent_in_an_earlier_epoch_leaves_the_record_of_a_suspect
                an_owner_is_told_what_others_stored_for_it
                an_owner_is_told_what_an_operator_did_through_another
                each_engine_finds_its_own_marks;
            alike:
                a_store_answers_like_the_one_in_memory;
            retention:
                what_is_done_and_old_goes_with_all_that_belongs_to_it
                what_is_done_later_goes_later
                what_is_old_goes_in_steps
                expired_keys_are_forgotten_and_no_others
                each_interface_has_its_own_retention
                quarantined_messages_go_where_their_interface_says_so
                a_shorter_retention_waits_until_it_is_confirmed
                a_shorter_retention_that_is_taken_back_removes_nothing
                a_shorter_retention_takes_only_what_is_done
                a_longer_retention_keeps_old_messages_too
                one_change_of_an_interface_runs_at_a_time
                a_change_is_finished_by_the_next_process
                a_new_interface_has_what_it_wants
                what_is_kept_beyond_its_window_is_told
                how_far_messages_grew_old_is_remembered
                a_clock_that_steps_both_ways_loses_nothing;
        }
    };
    (@ $harness:expr; $($module:ident: $($case:ident)+;)+) => {
        $($(
            #[tokio::test]
            async fn $case() {
                $crate::conformance::$module::$case(&$harness).await;
            }
        )+)+

        #[test]
        fn every_conformance_case_is_listed() {
            let listed = [$($(stringify!($case)),+),+];
            let unlisted: Vec<String> =
                $crate::conformance::cases().filter(|case| !listed.contains(&case.as_str())).collect();
            assert_eq!(unlisted, [""; 0], "add them to `conformance_cases!`");
        }
    };
}

/// The names of all cases, from their source.
pub fn cases() -> impl Iterator<Item = String> {
    let sources = [
        include_str!("conformance/actions.rs"),
        include_str!("conformance/alike.rs"),
        include_str!("conformance/cursors.rs"),
        include_str!("conformance/destinations.rs"),
        include_str!("conformance/intake.rs"),
        include_str!("conformance/keeping.rs"),
        include_str!("conformance/listing.rs"),
        include_str!("conformance/order.rs"),
        include_str!("conformance/ownership.rs"),
        include_str!("conformance/results.rs"),
        include_str!("conformance/retention.rs"),
        include_str!("conformance/state.rs"),
    ];
    sources.into_iter().flat_map(|source| {
        source
            .lines()
            .filter_map(|line| Some(line.strip_prefix("pub async fn ")?.split('(').next()?.to_owned()))
    })
}
