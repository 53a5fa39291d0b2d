//! State on the stage. What a plugin writes is there at once: whether it would be kept follows from
//! the verdicts, which a test sees.

use std::collections::{BTreeMap, VecDeque};

use crate::state::Error;
use crate::testing::with_stage;

/// Bytes of keys and values, and names of one scan at most, as in the host.
const KEY_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 64 << 10;
const SCAN_MAX: u32 = 1_000;

/// None of it: no test has granted it.
#[derive(Debug, Default)]
pub(crate) struct StagedState {
    values: Option<BTreeMap<String, Vec<u8>>>,
    failures: VecDeque<Error>,
}

impl StagedState {
    fn values(&mut self) -> Result<&mut BTreeMap<String, Vec<u8>>, Error> {
        if let Some(error) = self.failures.pop_front() {
            return Err(error);
        }
        self.values.as_mut().ok_or(Error::Denied)
    }

    pub fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.values()?.get(key).cloned())
    }

    pub fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        let values = self.values()?;
        check(key)?;
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::QuotaExceeded);
        }
        values.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    pub fn delete(&mut self, key: &str) -> Result<(), Error> {
        let values = self.values()?;
        check(key)?;
        values.remove(key);
        Ok(())
    }

    pub fn scan(&mut self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, Error> {
        let keys = self.values()?.keys().filter(|key| key.starts_with(prefix));
        let behind = keys.filter(|key| after.is_none_or(|after| key.as_str() > after));
        Ok(behind.take(limit.min(SCAN_MAX) as usize).cloned().collect())
    }
}

fn check(key: &str) -> Result<(), Error> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::QuotaExceeded);
    }
    if key.is_empty() || key.contains('\0') {
        return Err(Error::Other("a key has 1 to 256 bytes and no zero byte".into()));
    }
    Ok(())
}

/// Grants state that holds these values.
pub fn grant_state<'v>(values: impl IntoIterator<Item = (&'v str, &'v str)>) {
    let values = values.into_iter().map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
    with_stage(|stage| stage.state.values = Some(values.collect()));
}

/// What is kept under a key.
pub fn state(key: &str) -> Option<Vec<u8>> {
    with_stage(|stage| stage.state.values.as_ref()?.get(key).cloned())
}

/// The next use of state fails.
pub fn fail_state(error: Error) {
    with_stage(|stage| stage.state.failures.push_back(error));
}
