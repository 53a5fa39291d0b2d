//! The file sender on a stage: its cases, and what goes wrong between append and sync.

mod cases;
mod faults;
